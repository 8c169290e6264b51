# shellcheck shell=bash
# For scripts that run in the guest: TAP, the daemon, and clients driven step by step.
#
# A client is a worker (worker.c) at the end of two fifos: `client_start NAME UID`, then
# `say NAME COMMAND...` sends a line and leaves the answer in $answer. Numbers of interest come from
# the kernel: VmPin of a process, "rdma resource show mr".

set -uo pipefail
export PATH=$KVREG_BUILD:$PATH
RUN=$(mktemp -d /tmp/kvreg.XXXXXX)
chmod 755 "$RUN"
export KVREG_SOCKET=$RUN/client/kvregd.sock KVREG_ADMIN_SOCKET=$RUN/admin/admin.sock
tests=0
failures=0

# ok TEXT COMMAND...: one test.
ok() {
	local text=$1
	shift
	tests=$((tests + 1))
	if "$@"; then
		echo "ok $tests - $text"
	else
		echo "not ok $tests - $text"
		echo "# failed: $*"
		[[ -z ${answer-} ]] || echo "# last answer: $answer"
		failures=$((failures + 1))
	fi
}

# plan: the end of a script.
plan() {
	echo "1..$tests"
	((failures == 0))
}

# eventually COMMAND...: true as soon as the command is, false when it was not for a long time.
eventually() {
	local i
	for ((i = 0; i < 300; i++)); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}

field() { # field KEY <<<"ok key=value ..."
	grep -oE "(^| )$1=[^ ]*" | head -n 1 | cut -d= -f2-
}

# ---- the daemon

daemon_options=() # more of them, for daemon_start

daemon_start() { # daemon_start [CONFIG TEXT]
	printf '%s\n' "${1-}" >"$RUN/conf"
	"$KVREG_BUILD/kvregd" --config "$RUN/conf" --socket "$KVREG_SOCKET" --admin-socket "$KVREG_ADMIN_SOCKET" \
		--foreground "${daemon_options[@]}" 2>>"$RUN/daemon.log" &
	daemon=$!
	eventually status >/dev/null || { cat "$RUN/daemon.log" && return 1; }
}

daemon_stop() {
	kill "$daemon" && wait "$daemon"
}

status() { kvregctl status --json 2>/dev/null; }

# status_is KEY VALUE: what kvregctl says.
status_is() { [[ $(status | sed -n "s/^  \"$1\": \([^,]*\),\{0,1\}$/\1/p") == "$2" ]]; }

# ---- the kernel

vm_pin() { awk '/^VmPin:/ { print $2 * 1024; found = 1 } END { if (!found) print 0 }' "/proc/$1/status" 2>/dev/null || echo 0; }
vm_pin_is() { [[ $(vm_pin "$1") == "$2" ]]; }
mr_count() { rdma resource show mr | grep -c . || true; }
mr_count_is() { [[ $(mr_count) == "$1" ]]; }
pinned_total() { cat /proc/[0-9]*/status 2>/dev/null | awk '/^VmPin:/ { n += $2 } END { print n * 1024 }'; }
pinned_total_is() { [[ $(pinned_total) == "$1" ]]; }
cap() { awk -v key="Cap$2:" '$1 == key { print $2 }' "/proc/$1/status"; }
uid_of() { awk '/^Uid:/ { print $2 }' "/proc/$1/status"; }
gone() { [[ ! -e /proc/$1 ]]; }
sessions() { pgrep -f kvregd-session; }
no_sessions() { ! sessions >/dev/null; }

# ---- clients

declare -A pid_of=() in_of=() out_of=()

client_start() { # client_start NAME UID [MEMLOCK KiB]
	local name=$1 uid=$2 memlock=${3-64} i o
	rm -f "$RUN/$name."*
	mkfifo "$RUN/$name.in" "$RUN/$name.out"
	(
		# A child that held another client's fifos would keep that one from its end of file.
		for i in "${in_of[@]}" "${out_of[@]}"; do exec {i}>&-; done
		ulimit -l "$memlock"
		exec setpriv --reuid="$uid" --regid="$uid" --clear-groups --inh-caps=-all --no-new-privs \
			"$KVREG_BUILD/tests/vm/${client_program-worker}" "$name" <"$RUN/$name.in" >"$RUN/$name.out"
	) &
	pid_of[$name]=$!
	exec {i}>"$RUN/$name.in" {o}<"$RUN/$name.out"
	in_of[$name]=$i
	out_of[$name]=$o
}

say() { # say NAME COMMAND [ARGS]
	local name=$1
	shift
	answer=''
	echo "$*" >&"${in_of[$name]}" || return 1
	IFS= read -r -t 120 answer <&"${out_of[$name]}" || return 1
	[[ $answer == ok* ]]
}

# begin NAME COMMAND: without waiting for the answer.
begin() {
	local name=$1
	shift
	echo "$*" >&"${in_of[$name]}"
}

refused() { # refused CODE NAME COMMAND [ARGS]: the answer is an error of that code, with a hint
	local code=$1
	shift
	! say "$@" && [[ $answer == *" code=$code "*": "* ]]
}

refused_errno() { # refused_errno ERRNO NAME COMMAND [ARGS]
	local errno=$1
	shift
	! say "$@" && [[ $answer == "error errno=$errno "* ]]
}

client_ready() { # client_ready NAME UID BYTES: as far as a live region
	client_start "$1" "$2" && say "$1" open && say "$1" device && say "$1" attach 0 && say "$1" alloc "$3" &&
		say "$1" register
}

client_forget() {
	local name=$1 i=${in_of[$1]} o=${out_of[$1]}
	exec {i}>&- {o}<&-
	unset "in_of[$name]" "out_of[$name]"
	wait "${pid_of[$name]}" 2>/dev/null
	return 0
}

client_kill() {
	kill -9 "${pid_of[$1]}"
	client_forget "$1"
}
