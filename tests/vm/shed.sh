#!/usr/bin/env bash
# What a client cannot shed: a dead session's grant stays booked until the kernel shows its regions gone.
set -u
# shellcheck source=tests/vm/lib.sh
. "$KVREG_SRC/tests/vm/lib.sh"
MIB=$((1 << 20))
LEAVES=/sys/fs/cgroup/kvregd-sessions

leaf_of() { sed -n 's/^0:://p' "/proc/$1/cgroup"; }
objects() { sed -n 's/.*hca_object=\([0-9]*\).*/\1/p' "/sys/fs/cgroup$1/rdma.current" | awk '{ n += $1 } END { print n + 0 }'; }
no_leaves() { ! find "$LEAVES" -mindepth 1 -maxdepth 1 -type d | grep -q .; }
value() { tr -d '\n' <"/sys/fs/cgroup$1"; }

daemon_start
ok 'a region' client_ready a 65534 $((16 * MIB))
say a whoami
session=$(field session <<<"$answer") leaf=$(leaf_of "$session")
ok "the session is in a leaf of its own" grep -qE "^/kvregd-sessions/65534-${pid_of[a]}-[0-9]+$" <<<"$leaf"
ok 'the supervisor is not in it' test "$(leaf_of "$daemon")" != "$leaf"
ok 'the leaf counts the MR' test "$(objects "$leaf")" = 1
ok 'it may have so much memory' test "$(value "$leaf/memory.max")" = $(((64 << 20) + (32 << 20) / 256))
ok 'and so many processes' test "$(value "$leaf/pids.max")" = 32
ok 'and so many objects' grep -q 'hca_object=16385' "/sys/fs/cgroup$leaf/rdma.max"

# The client forks a holder of its uverbs fd, kills its session and exits.
ok 'it forks a holder' say a fork
holder=$(field pid <<<"$answer")
kill -9 "$session"
client_kill a
ok 'session and client are gone' eventually gone "$session"
ok 'the MR lives' test "$(mr_count)" = 1
ok 'the leaf still counts it' test "$(objects "$leaf")" = 1
sleep 1
ok 'its grant stays booked' status_is granted $((32 * MIB))
ok 'its session stays listed as draining' grep -q '"state": "draining"' <<<"$(kvregctl clients --json)"
kill -9 "$holder"
ok 'the last holder gone, the MR goes' eventually mr_count_is 0
ok 'and the grant' eventually status_is granted 0
ok 'and the leaf' eventually no_leaves

# An MR that cannot be destroyed: a memory window is bound to it when its session ends.
bound() { # bound HOW
	ok "$1: a region" client_ready w 65534 $((16 * MIB))
	say w connect
	ok "$1: a memory window is bound to it" say w window
	ok "$1: it cannot be deregistered" refused DEVICE_BUSY w deregister
	say w hangup
	ok "$1: the connection is closed" eventually no_sessions
	sleep 1
	ok "$1: the MR lives: data moves by it" say w move 9
	ok "$1: its grant stays booked" status_is granted $((32 * MIB))
	client_kill w
	ok "$1: the client gone, the MR goes" eventually mr_count_is 0
	ok "$1: and the grant" eventually status_is granted 0
}
bound 'with leaves'

# A stopped session is ended when its client is gone.
ok 'another region' client_ready b 65534 $((4 * MIB))
say b whoami
session=$(field session <<<"$answer")
kill -STOP "$session"
client_kill b
ok 'a stopped session is killed' eventually gone "$session"
ok 'its books are zero' eventually status_is sessions 0
ok 'no MR is left' mr_count_is 0
ok 'no leaf is left' eventually no_leaves

# A client that destroys its MR itself frees the grant for itself.
ok 'a region again' client_ready c 65534 $((4 * MIB))
say c whoami
leaf=$(leaf_of "$(field session <<<"$answer")")
say c destroy
ok 'the leaf sees what the client did itself' test "$(objects "$leaf")" = 0
client_kill c
eventually no_sessions
ok 'all books are zero at the end' eventually status_is granted 0
ok 'the daemon stops in order' daemon_stop

daemon_start $'[daemon]\ncgroup = none'
bound 'without leaves'
ok 'the daemon without leaves stops in order' daemon_stop
sed 's/^/# /' "$RUN/daemon.log"
plan
