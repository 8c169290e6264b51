# shellcheck shell=bash
# What the harness' host programs share: messages go to stderr, stdout belongs to results. Sourced, never run.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { printf 'vm: %s\n' "$*" >&2; }

die() { say "$*"; exit 2; }

# need COMMAND...: all of them, or one line naming what is missing and where it comes from.
need() {
	local c missing=()
	PATH=$PATH:/usr/sbin:/sbin
	for c; do command -v "$c" >/dev/null || missing+=("$c"); done
	((${#missing[@]} == 0)) ||
		die "missing: ${missing[*]} (install the packages that $here/packages lists)"
}

# lock FILE: held until this program ends; another run waits here, so a cache is filled only once.
lock() {
	mkdir -p "$(dirname "$1")"
	exec {lock_fd}>"$1"
	flock "$lock_fd"
}
