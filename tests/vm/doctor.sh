#!/usr/bin/env bash
# kvregctl doctor on real verbs: what it says is so (the kernel is asked too), and what it says to change helps.
set -u
# shellcheck source=tests/vm/lib.sh
. "$KVREG_SRC/tests/vm/lib.sh"
KIB=1024
MIB=$((KIB * KIB))
UNFIT=5
node=/dev/infiniband/uverbs0

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# doctor STATUS [OPTION...]: as uid 65534 under ulimit -l $memlock; its output is in $answer.
memlock=64
doctor() {
	local wanted=$1 rc=0
	shift
	answer=$(ulimit -l "$memlock" && exec "${nobody[@]}" --inh-caps=-all kvregctl doctor "$@" 2>&1) || rc=$?
	((rc == wanted))
}

# finds VERDICT CHECK PATTERN: there is such a line.
finds() { grep -qE "^$1  $2 +.*$3" <<<"$answer"; }
# advises PATTERN: something is to change.
advises() { grep -qE "^ +change: .*$1" <<<"$answer"; }
# only VERDICT CHECK...: nothing else has that verdict.
only() {
	local verdict=$1
	shift
	[[ $(awk -v v="$verdict" '$1 == v { print $2 }' <<<"$answer" | paste -sd ' ') == "$*" ]]
}

no_daemon() {
	ok 'no daemon: that is a failure' doctor $UNFIT
	ok 'no daemon: and the only one' only FAIL daemon
	ok 'no daemon: it is to be started' advises 'start kvregd'
	memlock=unlimited
	ok 'no daemon, no limit: it is none' doctor 0
	ok 'no daemon, no limit: but the only warning' only WARN daemon
	ok 'no daemon, no limit: memlock' finds PASS memlock unlimited
	memlock=64
}

# The kernel under the same limit agrees about what fits.
limits() {
	ok 'limit: a client of the daemon is well' doctor 0 --for 64K
	ok 'limit: of 64 KiB it is warned' only WARN memlock
	ok 'limit: with the numbers' finds WARN memlock '64K \(hard: 64K\), of which 0 are pinned'
	ok 'limit: the remedy knows who lowered it' advises \
		"nothing for what kvregd registers; else keep the 8M that pid $$ \(bash\) above it has"
	ok 'limit: the devices are well' finds PASS devices 'rxe0'
	ok 'limit: the node is well' finds PASS uverbs "rxe0: $node opens"
	ok 'limit: the daemon is well' finds PASS daemon 'device verbs'
	ok 'limit: 64 KiB fit' finds PASS fits-direct '64K'
	client_start d 65534
	say d device
	ok 'limit: so says the kernel' say d direct $((64 * KIB))
	ok 'limit: 65 KiB do not' doctor 0 --for 65K
	ok 'limit: which is a warning' finds WARN fits-direct ENOMEM
	ok 'limit: so says the kernel' refused_errno ENOMEM d direct $((65 * KIB))
	ok 'limit: 33 KiB with two devices do not' doctor 0 --for 33K --nics 2
	ok 'limit: they are 66 KiB' finds WARN fits-direct '2 x 33K = 72K'
	ok 'limit: through the daemon they fit' finds PASS fits-brokered '33K of the'
	ok 'limit: more than the host has does not' doctor $UNFIT --for 1T
	ok 'limit: and that is the only failure' only FAIL fits-brokered
	client_forget d
}

capabilities() {
	local ambient=('--inh-caps=-all,+ipc_lock' '--ambient-caps=+ipc_lock')
	answer=$(ulimit -l 64 && "${nobody[@]}" "${ambient[@]}" kvregctl doctor --for 1M 2>&1)
	ok 'capability: it sets the limit aside' finds PASS memlock '64K, which CAP_IPC_LOCK'
	ok 'capability: anything fits' finds PASS fits-direct 'no limit applies'
	ok 'capability: nothing is wrong' only WARN
	answer=$(ulimit -l 64 && "${nobody[@]}" --inh-caps=-all unshare -Ur kvregctl doctor --for 1M 2>&1)
	ok 'user namespace: the capability is there and does not count' finds WARN capability 'user namespace'
	ok 'user namespace: the limit does' only WARN memlock capability fits-direct
}

# What it says to run is run, word for word.
permissions() {
	chmod 600 "$node"
	ok 'mode 600: a failure' doctor $UNFIT
	ok 'mode 600: the only one' only FAIL uverbs
	ok 'mode 600: the node is named' finds FAIL uverbs "$node cannot be opened .*: Permission denied"
	ok 'mode 600: the remedy is a command' advises "chmod 0666 $node,"
	eval "$(grep -oE "chmod 0666 $node" <<<"$answer")"
	ok 'mode 600: it helps' doctor 0
	ok 'mode 600: the node is well' finds PASS uverbs "$node opens"
	ok 'mode 600: a client registers' client_ready p 65534 $MIB
	client_forget p
	chgrp kvreg-session "$node" && chmod 660 "$node"
	ok 'mode 660: a failure' doctor $UNFIT
	ok 'mode 660: the group is the remedy' advises 'add the user to the group kvreg-session'
	nobody=(setpriv --reuid=65534 --regid=65534 --groups=kvreg-session)
	ok 'mode 660: it helps' doctor 0
	nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	chgrp root "$node" && chmod 666 "$node"
}

# unit PROPERTY...: the doctor in a unit of systemd's.
unit() {
	local properties=() property
	for property in "$@"; do properties+=(-p "$property"); done
	answer=$(systemd-run --wait --pipe --quiet --collect --unit=engine -E KVREG_SOCKET="$KVREG_SOCKET" -p User=nobody \
		-p LimitMEMLOCK=64K "${properties[@]}" "$KVREG_BUILD/kvregctl" doctor 2>&1)
}

units() {
	unit
	ok 'unit: it is named' finds PASS origin 'system unit engine.service'
	ok 'unit: its limit is 64 KiB' only WARN memlock
	ok 'unit: the remedy is a property of it' advises 'LimitMEMLOCK=infinity in \[Service\] of engine.service'
	unit LimitMEMLOCK=infinity
	ok 'unit: it helps' only WARN
	unit DevicePolicy=closed
	ok 'unit: a device cgroup keeps it out' finds FAIL uverbs "$node cannot be opened .*: Operation not permitted"
	ok 'unit: the remedy is a property' advises 'DeviceAllow=char-infiniband_verbs rw'
	unit DevicePolicy=closed 'DeviceAllow=char-infiniband_verbs rw'
	ok 'unit: it helps' finds PASS uverbs "$node opens"
}

no_daemon
daemon_start
limits
capabilities
permissions
((!VM_SYSTEMD)) || units
eventually no_sessions
ok 'the daemon stops in order' daemon_stop
sed 's/^/# /' "$RUN/daemon.log"
plan
