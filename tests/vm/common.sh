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

# The machine's Debian archive, read from its sources (both formats), so that it is known without downloaded lists.
mirror() { # mirror FILE: FILE is for its notes
	{ cat /etc/apt/sources.list.d/*.sources || true; } 2>/dev/null |
		awk -v RS= -F '\n' '{ uri = main = off = ""
			for (i = 1; i <= NF; i++) { n = split($i, w, /[ \t]+/); key = tolower(w[1])
				if (key == "uris:") uri = w[2]
				if (key == "enabled:" && w[2] == "no") off = 1
				if (key == "components:" && $i ~ / main( |$)/) main = 1 }
			if (uri && main && !off) print uri }' >"$1"
	{ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list || true; } 2>/dev/null |
		sed -nE 's/^deb[ \t]+(\[[^]]*\][ \t]*)?([^ \t]+)[ \t].* main( .*)?$/\2/p' >>"$1"
	grep -E '/debian(/|\.list)?$' "$1" | head -n 1
}
