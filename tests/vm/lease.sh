#!/usr/bin/env bash
# Memlock leases: a process's own registration of private memory, within the quota, and nobody keeps more than that.
set -u
# shellcheck source=tests/vm/lib.sh
. "$KVREG_SRC/tests/vm/lib.sh"
MIB=$((1 << 20)) OLD=65536

same() { [[ $1 == "$2" ]]; }
limit_of() { awk '/^Max locked memory/ { print $4 }' "/proc/$1/limits"; }
limit_is() { [[ $(limit_of "$1") == "$2" ]]; }
# Rounded up, and with a mark in the last 12 bits.
limit_near() { (($(limit_of "$1") >= $2 && $(limit_of "$1") < $2 + 12288)); }
booked() { status_is granted "$1"; }
leased() { kvregctl clients --json | awk -v pid="$1" '/"pid":/ { p = ($2 + 0 == pid) } /"leased":/ && p { print $2 + 0; exit }'; }
leased_is() { [[ $(leased "$1") == "$2" ]]; }
start() { # start NAME UID: connected, with a device
	client_program=leaser client_start "$1" "$2" && say "$1" open && say "$1" device
}

daemon_start $'[uid 65534]\nbytes = 256M\n[uid 1234]\nbytes = 32M\n[class held-not]\nsocket = /run/kvreg-b/s\nleases = momentary\n[class none]\nsocket = /run/kvreg-c/s\nleases = none'

ok 'a client' start a 65534
pid=${pid_of[a]}
ok 'without a lease 64 MiB are refused (ENOMEM)' refused_errno ENOMEM a keep $((64 * MIB))
ok 'a lease of 64 MiB' say a lease $((64 * MIB))
ok 'its limit is raised by that' limit_near "$pid" $((64 * MIB + OLD))
ok 'it is booked' booked $((64 * MIB))
ok 'and shown with its process' leased_is "$pid" $((64 * MIB))
ok 'the registration passes' say a keep $((64 * MIB))
ok 'the kernel has pinned it for the client itself' vm_pin_is "$pid" $((64 * MIB))
ok 'the lease ends' say a endlease
ok 'the limit falls to what is pinned and the old one' limit_near "$pid" $((64 * MIB + OLD))
ok 'no more than the old limit is left' refused_errno ENOMEM a keep $((OLD + 4096))
ok 'it stays booked while it is pinned' booked $((64 * MIB))
ok 'a second lease beside it' say a lease $((16 * MIB))
ok 'both are booked' booked $((80 * MIB))
ok 'the second one ends' say a endlease
ok 'only what is pinned is booked' booked $((64 * MIB))
ok 'it is deregistered' say a unkeep
ok 'the book follows' eventually booked 0
ok 'and the limit is the old one' eventually limit_is "$pid" $OLD

# Forked meanwhile.
say a lease $((32 * MIB))
ok 'fork: a child' say a fork
child=$(field pid <<<"$answer")
ok 'fork: it has inherited the limit' limit_near "$child" $((32 * MIB + OLD))
ok 'fork: one that hides' say a evade
hidden=$(field pid <<<"$answer")
ok 'fork: it has kept nearly all of the limit' test "$(limit_of "$hidden")" -gt $((31 * MIB))
ok 'fork: its parent is another' test "$(awk '/^PPid:/ { print $2 }' /proc/"$hidden"/status)" != "$pid"
ok 'fork: one that locks 8 MiB' say a lockchild $((8 * MIB))
locker=$(field pid <<<"$answer")
ok 'fork: the lease ends' say a endlease
ok 'fork: the child has the old limit' limit_is "$child" $OLD
ok 'fork: so has the one that hid' limit_is "$hidden" $OLD
ok 'fork: so has the one that locked' limit_is "$locker" $OLD
ok 'fork: what that one locked is booked' eventually booked $((8 * MIB))
kill -9 "$child" "$hidden" "$locker"
ok 'fork: until it is gone' eventually booked 0
ok 'fork: an innocent process of the user keeps its limit' test "$(limit_of $$)" != $OLD
client_kill a
ok 'all of it is gone with the client' eventually status_is sessions 0

# What it could have pinned without us it cannot have again and again.
ok 'creep: a client' start e 65534
pid=${pid_of[e]}
ok 'creep: a lease' say e lease $((16 * MIB))
ok 'creep: a registration' say e keep $((16 * MIB))
say e endlease
ok 'creep: as much as by the old limit' say e keep $OLD
sleep 3
ok 'creep: and no more after a look' refused_errno ENOMEM e keep 4096
ok 'creep: booked is the lease' booked $((16 * MIB))
ok 'creep: a child forked now' say e fork
child=$(field pid <<<"$answer")
ok 'creep: it has the raised limit' limit_near "$child" $((16 * MIB + OLD))
ok 'creep: not for long' eventually limit_is "$child" $OLD
kill -9 "$child"
client_kill e
eventually booked 0

# Locked memory has a counter of its own, and stays booked too.
ok 'mlock: a client' start l 65534
say l lease $((16 * MIB))
ok 'mlock: by a lease' say l lock $((16 * MIB))
say l endlease
ok 'mlock: it stays booked' booked $((16 * MIB))
ok 'mlock: unlocked' say l unlock
ok 'mlock: it is not' eventually booked 0
ok 'its own limit is its own affair while nothing is leased' prlimit --pid "${pid_of[l]}" --memlock=131072:131072
sleep 3
ok 'nobody sets it back' limit_is "${pid_of[l]}" 131072
ok 'the next lease is on top of it' say l lease $MIB
ok 'as it is now' limit_near "${pid_of[l]}" $((MIB + 131072))
say l endlease
ok 'and it falls to that' limit_is "${pid_of[l]}" 131072
client_kill l

# Containers share users: who is in another cgroup is nobody's kin.
mkdir -p /sys/fs/cgroup/pod-a /sys/fs/cgroup/pod-b
client_program=leaser client_start p 65534
echo "${pid_of[p]}" >/sys/fs/cgroup/pod-a/cgroup.procs
ok 'cgroup: a client in one' say p open
say p lease $((64 * MIB))
innocent() { # innocent CGROUP: started now, as the same user, with a limit of its own
	(
		echo "$BASHPID" >"/sys/fs/cgroup/$1/cgroup.procs"
		ulimit -l 8192
		exec setpriv --reuid=65534 --regid=65534 --clear-groups sleep 100
	) &
	started=$!
}
innocent pod-b
other=$started
eventually limit_is "$other" $((8 * MIB))
ok 'cgroup: a child that hides and leases' say p evade leases
hidden=$(field pid <<<"$answer")
say p endlease
ok 'cgroup: the child has the old limit' eventually limit_is "$hidden" $OLD
ok 'cgroup: the other one has its own' limit_is "$other" $((8 * MIB))
kill -9 "$hidden" "$other"
client_kill p
ok 'cgroup: all books are zero' eventually booked 0

# The quota.
ok 'quota: a client' start q 1234
ok 'quota: above it' refused LIMIT_QUOTA q lease $((64 * MIB))
ok 'quota: the numbers are named' grep -q 'of 33554432 bytes are granted, and 67108864 more needed' <<<"$answer"
ok 'quota: what fits' say q lease $((24 * MIB))
client_start b 1234
say b open && say b device && say b attach 0 && say b alloc $((16 * MIB))
ok 'quota: brokered bytes do not fit beside it' refused LIMIT_QUOTA b register
ok 'quota: who holds it is named' grep -q "held by ${pid_of[q]} (" <<<"$answer"
say q endlease
ok 'quota: the lease ended, they fit' say b register
ok 'quota: and then no such lease' refused LIMIT_QUOTA q lease $((24 * MIB))
client_kill q
client_kill b
eventually status_is sessions 0
given=0
for i in 1 2 3 4 5 6 7 8 9 10; do
	start "m$i" 1234
	say "m$i" lease $((8 * MIB)) && given=$((given + 1))
done
ok 'quota: of ten processes four get 8 of 32 MiB' same $given 4
ok 'quota: booked is the quota' booked $((32 * MIB))
sum=0
for i in 1 2 3 4 5 6 7 8 9 10; do sum=$((sum + $(limit_of "${pid_of[m$i]}") - OLD)); done
ok 'quota: nor do their limits exceed it together' test $sum -le $((32 * MIB + 10 * 12288))
for i in 1 2 3 4 5 6 7 8 9 10; do client_kill "m$i"; done
ok 'quota: all of it comes back' eventually booked 0

# Held.
ok 'held: a client' start h 65534
pid=${pid_of[h]}
ok 'held: 2 x 64 MiB' say h held $((64 * MIB)) 2
ok 'held: the limit is that of one' limit_near "$pid" $((64 * MIB))
ok 'held: both are booked' booked $((128 * MIB))
ok 'held: it registers within' say h keep $((48 * MIB))
ok 'held: that is no more' booked $((128 * MIB))
ok 'held: its connection ends' say h close
ok 'held: its session goes' eventually no_sessions
ok 'held: it lasts' limit_near "$pid" $((64 * MIB))
ok 'held: it stays booked' booked $((128 * MIB))
ok 'held: its client is listed' grep -q '"state": "leasing"' <<<"$(kvregctl clients --json)"
client_kill h
ok 'held: it ends with its process' eventually booked 0
ok 'held: nothing is listed' eventually status_is sessions 0
ok 'auto: a client' start o 65534
ok 'auto: as much as the quota allows, by two' say o held 0 2
ok 'auto: that is half of it' same "$(field bytes <<<"$answer")" $((128 * MIB))
ok 'auto: all of it is booked' booked $((256 * MIB))
client_kill o
ok 'auto: it comes back' eventually booked 0

# By class.
KVREG_SOCKET=/run/kvreg-b/s start c 65534
ok 'class: no held one where they are momentary' refused LEASE_FORBIDDEN c held $MIB
ok 'class: a momentary one' say c lease $MIB
client_kill c
KVREG_SOCKET=/run/kvreg-c/s start n 65534
ok 'class: none where there are none' refused LEASE_FORBIDDEN n lease $MIB
client_kill n
eventually status_is sessions 0
ok 'all books are zero at the end' booked 0
ok 'the daemon stops in order' daemon_stop
sed 's/^/# /' "$RUN/daemon.log"
plan
