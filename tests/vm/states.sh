#!/usr/bin/env bash
# A client ends while its session is inside a call of the kernel, on real verbs: held there by a fault, killed, and
# nothing is left; with a child that keeps its device, what the kernel still pins stays booked.
set -u
# shellcheck source=tests/vm/lib.sh
. "$KVREG_SRC/tests/vm/lib.sh"
MIB=$((1 << 20))
STAGES=(attach map register deregister)

# A class for each stage, whose sessions are held there for much longer than this script lasts.
classes() {
	local stage
	for stage in "${STAGES[@]}"; do
		printf '[class %s]\nsocket = %s/%s/kvregd.sock\n' "$stage" "$RUN" "$stage"
		printf '[test %s]\ndelay = %s:600000\n' "$stage" "$stage"
	done
}

is_held() { grep -q "client ${pid_of[$1]} (.*held in stage $1 by" "$RUN/daemon.log"; }

# client_is PID TEXT: what its line in kvregctl clients holds, without blanks.
client_is() { kvregctl clients --json 2>/dev/null | tr -d ' \n' | grep -o "{\"pid\":$1,[^}]*}" | grep -qF "$2"; }

# held STAGE COMMANDS...: a client named after the stage, whose last command does not return.
held() {
	local stage=$1
	shift
	KVREG_SOCKET=$RUN/$stage/kvregd.sock client_start "$stage" 65534
	while (($# > 1)); do
		# shellcheck disable=SC2086
		ok "$stage: $1" say "$stage" $1
		shift
	done
	# shellcheck disable=SC2086
	begin "$stage" $1
	ok "$stage: the session is held in it" eventually is_held "$stage"
}

# Each answer comes while the others are held.
others_are_served() { # others_are_served WHEN
	ok "$1: another client registers" client_ready b 1234 $((8 * MIB))
	ok "$1: and deregisters" say b deregister
	client_kill b
}

baseline=$(mr_count) pinned=$(pinned_total)
nothing_is_left() { # nothing_is_left WHEN
	ok "$1: no session is left" eventually no_sessions
	ok "$1: no MR is left" eventually mr_count_is "$baseline"
	ok "$1: no process has pins" eventually pinned_total_is "$pinned"
	ok "$1: nothing is granted" eventually status_is granted 0
}

killed() {
	local stage
	held attach open device 'attach 0'
	held map open device 'attach 0' "alloc $((16 * MIB))" register
	held register open device 'attach 0' "alloc $((16 * MIB))" register
	held deregister open device 'attach 0' "alloc $((16 * MIB))" register deregister
	ok 'held: the MR that is being destroyed is there' mr_count_is $((baseline + 1))
	ok 'held: and no other is pinned yet' pinned_total_is $((pinned + 16 * MIB))
	others_are_served held
	for stage in "${STAGES[@]}"; do
		ok "held: administrators see that $stage does not answer" client_is "${pid_of[$stage]}" '"answered":false'
	done
	for stage in "${STAGES[@]}"; do client_kill "$stage"; done
	nothing_is_left killed
}

# Its child keeps the socket and the device: the session ends all the same, and the MR does not.
forked() {
	local client holder
	KVREG_SOCKET=$RUN/deregister/kvregd.sock ok 'forked: a region' client_ready deregister 65534 $((16 * MIB))
	ok 'forked: it forks a holder' say deregister fork
	client=${pid_of[deregister]} holder=$(field pid <<<"$answer")
	begin deregister deregister
	ok 'forked: the session is held in deregister' eventually is_held deregister
	client_kill deregister
	others_are_served forked
	ok 'forked: the session is ended' eventually no_sessions
	ok 'forked: the MR lives as long as the holder' mr_count_is $((baseline + 1))
	sleep 1
	ok 'forked: its grant stays booked' status_is granted $((32 * MIB))
	ok 'forked: and its session is listed as draining' client_is "$client" '"state":"draining"'
	kill -9 "$holder"
	nothing_is_left forked
}

daemon_options=(--allow-faults --log-level debug)
daemon_start "$(classes)" || exit 1
ok 'status says that faults happen on purpose' grep -q 'on purpose' <<<"$(status)"
killed
forked
ok 'the daemon stops in order' daemon_stop
sed 's/^/# /' "$RUN/daemon.log"
plan
