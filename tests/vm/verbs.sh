#!/usr/bin/env bash
# The first slice on real verbs: an unprivileged process registers, moves data, and leaves nothing behind.
set -u
# shellcheck source=tests/vm/lib.sh
. "$KVREG_SRC/tests/vm/lib.sh"
MIB=$((1 << 20))

same() { [[ $1 == "$2" ]]; }
differ() { [[ $1 != "$2" ]]; }

before() {
	client_start bare 65534
	ok 'bare: the device opens as uid 65534' say bare device
	ok 'bare: 64 MiB are refused by the kernel under ulimit -l 64 (ENOMEM)' refused_errno ENOMEM bare direct $((64 * MIB))
	client_forget bare
}

one_client() {
	local session lines
	lines=$(dmesg | wc -l)
	client_start a 65534
	ok 'open' say a open
	ok 'device' say a device
	ok 'attach' say a attach 0
	ok 'alloc 64 MiB' say a alloc $((64 * MIB))
	ok 'register 64 MiB' say a register
	say a whoami
	session=$(field session <<<"$answer")
	ok 'VmPin of the session is what is registered' vm_pin_is "$session" $((64 * MIB))
	ok 'the session says the same' same "$(field charged <<<"$answer")" $((64 * MIB))
	ok "VmPin of the client is 0" vm_pin_is "${pid_of[a]}" 0
	ok 'the kernel shows one MR more' mr_count_is $((baseline + 1))
	ok "the MR is the session's, by name" grep -q "kvreg:${pid_of[a]}" <<<"$(rdma resource show mr)"
	ok 'queue pairs' say a connect
	ok 'RDMA WRITE and READ by its own addresses' say a move 1
	privilege "$session"
	ok 'kvregctl clients' grep -q "\"session_pid\": $session" <<<"$(kvregctl clients --json)"
	ok 'kvregctl regions' grep -q '"length": 67108864' <<<"$(kvregctl regions --json)"
	ok 'deregister' say a deregister
	ok 'VmPin of the session is 0 again' vm_pin_is "$session" 0
	ok 'release' say a release
	ok 'detach' say a detach
	ok 'close' say a close
	ok 'the PD is empty: it can be freed' say a leave
	ok 'the driver has logged nothing meanwhile' test -z "$(dmesg | tail -n "+$((lines + 1))" | grep -iE 'rxe|uverbs')"
	ok 'the session ends' eventually gone "$session"
	client_forget a
}

# SYS_RESOURCE 24, SETUID 7, SETGID 6; IPC_LOCK is 14.
privilege() {
	local session=$1 set
	for set in Prm Eff; do
		ok "supervisor: Cap$set is the designed three" same "$(cap "$daemon" $set)" 00000000010000c0
	done
	for set in Inh Bnd Amb; do
		ok "supervisor: Cap$set is empty" same "$(cap "$daemon" $set)" 0000000000000000
	done
	for set in Inh Prm Eff Bnd Amb; do
		ok "session: Cap$set is empty" same "$(cap "$session" $set)" 0000000000000000
	done
	ok "session: its uid is the session user's" same "$(uid_of "$session")" "$(id -u kvreg-session)"
	ok 'session: its uid is not 0' differ "$(uid_of "$session")" 0
	ok "session: its uid is not the client's" differ "$(uid_of "$session")" 65534
	ok "session: nothing of the daemon's surroundings" same \
		"$(readlink /proc/"$session"/fd/0 /proc/"$session"/fd/1 /proc/"$session"/fd/2 /proc/"$session"/cwd | paste -sd ' ')" \
		'/dev/null /dev/null /dev/null /'
	ok 'session: a filter for system calls' grep -q '^Seccomp:.2' "/proc/$session/status"
	ok 'session: no_new_privs' grep -q '^NoNewPrivs:.1' "/proc/$session/status"
	ok 'session: its limit is its grant' grep -qE "^Max locked memory +134217728 +134217728" "/proc/$session/limits"
}

# killed STAGE COMMANDS...: a client killed there; the last command is under way when a leading - says so.
killed() {
	local stage=$1 command
	shift
	client_start v 65534
	for command in "$@"; do
		if [[ $command == -* ]]; then
			# shellcheck disable=SC2086
			begin v ${command#-}
			sleep 0.3
		else
			# shellcheck disable=SC2086
			ok "killed $stage: $command" say v $command
		fi
	done
	client_kill v
	ok "killed $stage: no MR is left" eventually mr_count_is "$baseline"
	ok "killed $stage: no process has pins" eventually pinned_total_is "$pinned"
	ok "killed $stage: no session is left" eventually no_sessions
	ok "killed $stage: nothing is granted" eventually status_is granted 0
}

kills() {
	killed 'after open' open
	killed 'after attach' open device 'attach 0'
	killed 'after import' open device 'attach 0' "alloc $((64 * MIB))"
	killed 'while registering' open device 'attach 0' "alloc $((512 * MIB))" -register
	killed 'with a live region' open device 'attach 0' "alloc $((64 * MIB))" register
	killed 'while data moves' open device connect 'attach 0' "alloc $((64 * MIB))" register -move
	killed 'while deregistering' open device 'attach 0' "alloc $((512 * MIB))" register -deregister
}

two_clients() {
	local address rkey
	ok 'two: uid 65534 has a region' client_ready a 65534 $((8 * MIB))
	address=$(field address <<<"$answer") rkey=$(field rkey <<<"$answer")
	ok 'two: uid 1234 has a region' client_ready b 1234 $((8 * MIB))
	ok 'two: queue pairs of a' say a connect
	ok 'two: queue pairs of b' say b connect
	ok 'two: a moves data' say a move 2
	ok 'two: b moves data' say b move 3
	ok "two: b cannot write by a's rkey and address" refused_errno EIO b foreign "$address" "$rkey"
	say a whoami
	ok 'two: a is charged its own bytes' same "$(field charged <<<"$answer")" $((8 * MIB))
	ok 'two: a moves data still' say a move 4
	client_kill b
	ok 'two: a moves data when b is killed' say a move 5
	ok 'two: a deregisters' say a deregister
	client_kill a
	ok 'two: no MR is left' eventually mr_count_is "$baseline"
}

refusals() {
	client_start r 65534
	say r open && say r device
	ok 'a wrong PD is refused' refused BAD_PD r attach 1000
	ok 'the right PD is taken' say r attach 0
	ok 'a short memfd is refused' refused SHORT_HANDLE r short $MIB
	ok 'the reason names both sizes' grep -q '1048576.*2097152' <<<"$answer"
	say r alloc $((4 * MIB))
	ok 'an unaligned iova is refused' refused ALIGNMENT r register 0 4096 0x10000800
	ok 'the reason names the iova' grep -q 0x10000800 <<<"$answer"
	ok 'another iova with the same in-page offset is taken' say r register 0 4096 0x10000000
	ok 'and given back' say r deregister
	say r alloc $((64 * MIB)) # uid 65534 may have 32 MiB in this daemon
	ok 'more than the quota is refused' refused LIMIT_QUOTA r register
	ok 'the reason names the quota' grep -q '33554432' <<<"$answer"
	ok 'what fits the quota is taken' say r register 0 $((32 * MIB))
	client_forget r
}

# The client destroys its MR itself and makes another, which gets the same handle.
behind_our_back() {
	ok 'behind: a region' client_ready d 65534 $((4 * MIB))
	ok 'behind: the client destroys it itself' say d destroy
	ok 'behind: deregister says so' refused MR_GONE d deregister
	ok 'behind: the next registration works' say d register
	ok 'behind: and can be given back' say d deregister
	client_forget d
}

# The same again is the same MR, as long as the kernel says that it is.
again() {
	local handle session
	client_start g 65534
	say g open && say g device && say g attach 0 && say g alloc $((4 * MIB)) && say g connect
	sleep 0.1 # a change in the tick of the last one would not show: no region is given again then
	ok 'again: a region' say g register
	handle=$(field handle <<<"$answer")
	ok 'again: the same' say g again
	ok 'again: it has the same handle' same "$(field handle <<<"$answer")" "$handle"
	ok 'again: the kernel has one MR' mr_count_is $((baseline + 1))
	ok 'again: the first is given back' say g deregister
	ok 'again: the kernel has it still' mr_count_is $((baseline + 1))
	ok 'again: data moves by the second' say g move 10
	ok 'again: the client destroys the MR itself' say g destroy
	ok 'again: it is not given again' say g again
	ok 'again: the kernel has the new one' mr_count_is $((baseline + 1))
	ok 'again: the old one is gone' refused MR_GONE g deregister
	ok 'again: data moves by the new one' say g move 11
	ok 'again: shared once more' say g again
	say g whoami
	session=$(field session <<<"$answer")
	kill -9 "$session"
	ok 'again: the session is gone' eventually gone "$session"
	ok 'again: the library gives the first back' say g deregister
	ok 'again: the second lives: data moves' say g move 12
	ok 'again: the library destroys the MR with the last' say g deregister
	ok 'again: no MR is left' mr_count_is "$baseline"
	client_forget g
}

survive() {
	local session
	ok 'survive: a region' client_ready s 65534 $((16 * MIB))
	say s connect
	say s whoami
	session=$(field session <<<"$answer")
	ok 'survive: data moves' say s move 6
	kill -9 "$session"
	ok 'survive: the session is gone' eventually gone "$session"
	ok 'survive: data moves without it' say s move 7
	ok 'survive: the grant stays booked while the client lives' status_is granted $((32 * MIB))
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null
	ok 'survive: data moves without any of us' say s move 8
	ok 'survive: the client destroys its region itself' say s deregister
	ok 'survive: no MR is left' mr_count_is "$baseline"
	ok 'survive: its PD is empty' say s leave
	client_forget s
}

baseline=$(mr_count) pinned=$(pinned_total)
before
# In 2 GiB the default quota of one uid is too small for the large region below.
daemon_start $'[quota]\ntotal = 80%\nper_uid = 60%'
one_client
ok 'kvregctl selftest moves bytes' setpriv --reuid=65534 --regid=65534 --clear-groups "$KVREG_BUILD/kvregctl" selftest
ok 'the example writes' setpriv --reuid=65534 --regid=65534 --clear-groups "$KVREG_BUILD/tests/examples/rdma-write" rxe0 1
kills
two_clients
behind_our_back
again
survive
daemon_start $'[uid 65534]\nbytes = 32M'
refusals
eventually no_sessions
ok 'all books are zero at the end' status_is granted 0
ok 'the daemon stops in order' daemon_stop
ok 'no MR is left at the end' mr_count_is "$baseline"
ok 'nothing is pinned at the end' pinned_total_is "$pinned"
sed 's/^/# /' "$RUN/daemon.log"
plan
