#!/usr/bin/env bash
# Programs that were never told about kvreg, Debian's and the tests' own, as uid 65534 without capabilities: each fails
# without us for locked memory, and passes with libkvreg-preload.so and with kvreg-run --memlock, both ends so.
set -u
# shellcheck source=tests/vm/lib.sh
. "$KVREG_SRC/tests/vm/lib.sh"
MIB=$((1 << 20))
STRANGER=$KVREG_BUILD/tests/unmodified/stranger
ip=10.77.0.1
port=20000
fixed_port=''
chmod 777 "$RUN" # strace writes there as the user

# as LIMIT COMMAND...: as an ordinary user with this limit of locked memory (KiB), 40 s at most.
as() {
	local limit=$1
	shift
	ulimit -l "$limit"
	exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --no-new-privs timeout -k 5 40 "$@"
}

listens() { ss -Hltn "sport = :$port" | grep -q . || ! kill -0 "$server" 2>/dev/null; }

# pair LIMIT "WRAPPER" COMMAND... -- MORE OF THE CLIENT: both ends end with 0. PORT in the command stands for the port.
# What they say is in $RUN/a.out and $RUN/b.out.
pair() {
	local limit=$1 wrapper=$2 command=() rc
	shift 2
	port=${fixed_port:-$((port + 1))}
	while [[ $1 != -- ]]; do command+=("${1//PORT/$port}") && shift; done
	shift
	# shellcheck disable=SC2086
	(as "$limit" $wrapper "${command[@]}" >"$RUN/a.out" 2>&1) &
	server=$!
	eventually listens
	# shellcheck disable=SC2086
	(as "$limit" $wrapper "${command[@]}" "$@" >"$RUN/b.out" 2>&1)
	rc=$?
	((rc == 0)) || kill "$server" 2>/dev/null
	wait "$server" && ((rc == 0))
}

# refused_pair ERRNO LIMIT COMMAND...: it does not work, and the kernel's answer to a verbs call is why.
refused_pair() {
	local errno=$1 limit=$2
	shift 2
	rm -f "$RUN"/trace*
	! pair "$limit" "strace -ff --seccomp-bpf -e trace=ioctl -o $RUN/trace" "$@" &&
		grep -qE "RDMA_VERBS_IOCTL, .*= -1 $errno" "$RUN"/trace*
}

show() { sed 's/^/# /' "$RUN/a.out" "$RUN/b.out" | cut -c1-300; }
worked() { pair "$@" || { show && false; }; }

# three ERRNO LIMIT NAME COMMAND...: without us, with the preload, with a held lease.
three() {
	local errno=$1 limit=$2 name=$3
	shift 3
	ok "$name, ulimit -l $limit: fails without us ($errno)" refused_pair "$errno" "$limit" "$@"
	ok "$name, ulimit -l $limit: works with the preload" worked "$limit" kvreg-run "$@"
	ok "$name, ulimit -l $limit: works with kvreg-run --memlock" worked "$limit" 'kvreg-run --memlock 128M' "$@"
	ok "$name: nothing is booked after it" eventually status_is granted 0
}

programs() {
	three ENOMEM 64 'ib_write_bw' ib_write_bw -d rxe0 -x 1 -s $MIB -n 10 -p PORT -- $ip
	three ENOMEM 64 'ib_read_bw' ib_read_bw -d rxe0 -x 1 -s $MIB -n 10 -p PORT -- $ip
	three ENOMEM 64 'ib_write_bw with 16 queue pairs and 64 MiB' \
		ib_write_bw -d rxe0 -x 1 -q 16 -s $((2 * MIB)) -n 5 -p PORT -- $ip
	three EPERM 0 'ib_send_lat' ib_send_lat -d rxe0 -x 1 -n 10 -p PORT -- $ip
	three ENOMEM 64 'ibv_rc_pingpong, data verified' ibv_rc_pingpong -d rxe0 -g 1 -s 2000000 -n 10 -c -p PORT -- $ip
	three EPERM 0 'ibv_ud_pingpong' ibv_ud_pingpong -d rxe0 -g 1 -n 10 -p PORT -- $ip
	export UCX_TLS=rc_v,ud_v UCX_NET_DEVICES=rxe0:1 UCX_IB_GID_INDEX=0
	three ENOMEM 64 'ucx_perftest put' ucx_perftest -t ucp_put_bw -s $MIB -n 10 -w 1 -p PORT -- $ip
	three ENOMEM 64 'ucx_perftest tag' ucx_perftest -t tag_bw -s $MIB -n 10 -w 1 -p PORT -- $ip
	fixed_port=47592
	three ENOMEM 64 'fi_pingpong, data verified' fi_pingpong -p verbs -e msg -c -S $MIB -I 10 -- $ip
}

stranger() { # stranger LIMIT "WRAPPER" WAY BYTES: says ok
	local limit=$1 wrapper=$2 rc
	shift 2
	# shellcheck disable=SC2086
	(as "$limit" $wrapper "$STRANGER" "$@" >"$RUN/a.out" 2>"$RUN/b.out" </dev/null)
	rc=$?
	((rc == 0)) || return $rc
	[[ $(tail -n 1 "$RUN/a.out") == ok ]]
}
works() { stranger "$@" || { show && false; }; }
fails() { # fails ERRNO LIMIT "WRAPPER" WAY BYTES
	local errno=$1
	shift
	! stranger "$@" && grep -q ": $errno\$" "$RUN/a.out"
}
fails_with() { # fails_with STATUS LIMIT "WRAPPER" WAY BYTES
	stranger "${@:2}"
	(($? == $1))
}
lines_are() { [[ $(grep -c '^kvreg: ' "$RUN/b.out") == "$1" ]]; }
told() { grep -qE "$1" "$RUN/b.out"; }

strangers() {
	local way
	for way in 'one 2000000' "threads $MIB" "fork $MIB" "parts $((768 * MIB))"; do
		# shellcheck disable=SC2086
		{
			ok "dlvsym, $way: fails without us" fails ENOMEM 64 '' $way
			ok "dlvsym, $way: works with the preload" works 64 kvreg-run $way
			ok "dlvsym, $way: without a word" lines_are 0
			ok "dlvsym, $way: works with kvreg-run" works 64 'kvreg-run --memlock 800M' $way
		}
	done
	ok 'dlvsym: nothing is booked after it' eventually status_is granted 0
	ok 'a limit of 0: works with the preload' works 0 kvreg-run one 2000000
	ok 'KVREG=off: as without us' fails ENOMEM 64 'kvreg-run env KVREG=off' one 2000000
	ok 'KVREG=off: without a word' lines_are 0
	ok 'KVREG_VERBOSE=1: works' works 64 'kvreg-run env KVREG_VERBOSE=1' one 2000000
	ok 'KVREG_VERBOSE=1: each lease is told' told '^kvreg: 2002944 bytes leased for REG_MR of 2000000 bytes'
}

# Causes that no lease can help: the program sees the same errno, and its user one line.
causes() {
	ok 'a hole: EFAULT as ever' fails EFAULT 64 kvreg-run hole 2000000
	ok 'a hole: one line says so' lines_are 1
	ok 'a hole: with code, numbers and hint' told '^kvreg: register failed: BAD_REGION: .*errno 14.*2002944 bytes.*: no hole'
	ok 'a hole within the limit: EFAULT' fails EFAULT 64 kvreg-run hole 4096
	ok 'a hole within the limit: the same line' told '^kvreg: register failed: BAD_REGION: '
	ok 'mapped for reading: the same' fails EFAULT 64 kvreg-run readonly 2000000
	ok 'mapped for reading: the line' told '^kvreg: register failed: BAD_REGION: '
	daemon_stop
	ok 'no daemon: ENOMEM as ever' fails ENOMEM 64 kvreg-run threads $MIB
	ok 'no daemon: one line of 64 threads' lines_are 1
	ok 'no daemon: it names the limit and the daemon' \
		told '^kvreg: register failed: LIMIT_MEMLOCK: .*RLIMIT_MEMLOCK 65536; NO_DAEMON: .*: start kvregd'
	ok 'no daemon: kvreg-run --memlock says so' fails_with 125 64 'kvreg-run --memlock 64M' one 2000000
	ok 'no daemon: by the line' told '^kvreg: connect failed: NO_DAEMON: '
	daemon_start $'[uid 65534]\nbytes = 1M'
	ok 'quota: ENOMEM as ever' fails ENOMEM 64 kvreg-run threads 2000000
	ok 'quota: one line of 64 threads' lines_are 1
	ok 'quota: it names the quota' \
		told '^kvreg: lease failed: LIMIT_QUOTA: .*of 1048576 bytes.*for REG_MR of 2000000 bytes.*/etc/kvregd.conf'
	ok 'quota: what fits is registered, one thread after the other' works 64 kvreg-run one 1000000
	ok 'quota: kvreg-run is refused' fails_with 125 64 'kvreg-run --memlock 64M' one 2000000
	ok 'quota: by the line' told '^kvreg: lease failed: LIMIT_QUOTA: '
	daemon_stop
}

# The daemon comes and goes while a program runs.
again() {
	local in out program
	mkfifo "$RUN/in" "$RUN/out"
	(as 64 kvreg-run "$STRANGER" again 2000000 <"$RUN/in" >"$RUN/out" 2>"$RUN/b.out") &
	program=$!
	exec {in}>"$RUN/in" {out}<"$RUN/out"
	ask() { echo >&"$in" && IFS= read -r -t 60 answer <&"$out" && [[ $answer == "$1" ]]; }
	old_limit() { [[ $(awk '/^Max locked memory/ { print $4 }' "/proc/$(pgrep -x stranger)/limits") == 65536 ]]; }
	ok 'restart: before' ask ok
	# What was unpinned falls back to the quota a little later; the limit of a program whose daemon was killed stays.
	ok 'restart: its limit has fallen' eventually old_limit
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null
	ok 'restart: killed' ask 'ibv_reg_mr: ENOMEM'
	ok 'restart: told once' lines_are 1
	ok 'restart: again' ask 'ibv_reg_mr: ENOMEM'
	ok 'restart: not told again' lines_are 1
	daemon_start
	ok 'restart: started' ask ok
	echo end >&"$in"
	ok 'restart: it ends well' wait "$program"
	exec {in}>&- {out}<&-
}

daemon_start $'[uid 65534]\nbytes = 1200M'
programs
strangers
causes
daemon_start
again
ok 'all books are zero at the end' eventually status_is granted 0
ok 'the daemon stops in order' daemon_stop
sed 's/^/# /' "$RUN/daemon.log"
plan
