#!/usr/bin/env bash
# The demo's story, for a person to read: one process that may not register memory, and then may.
# Runs as root where there is an RDMA device: in the guest, or on this host (DEVICE=NAME).
# Every line of it is a measurement of this run; a step that does not hold ends it with status 1.
set -u
# shellcheck source=tests/vm/lib.sh
. "$KVREG_SRC/tests/vm/lib.sh"
DEVICE=${DEVICE-}
MIB=$((1 << 20)) SIZE=$((64 << 20)) ENGINE_UID=65534

title() { printf '\n%s\n' "$*"; }
line() { printf '   %-38s %s\n' "$1" "$2"; }
mib() { echo "$(($1 / MIB)) MiB"; }
die() {
	printf '   FAILED: %s\n   last answer: %s\n' "$1" "${answer-}"
	sed 's/^/   kvregd: /' "$RUN/daemon.log" 2>/dev/null
	exit 1
}
must() { # must WHAT NAME COMMAND...
	local what=$1
	shift
	say "$@" || die "$what"
}
holds() { # holds WHAT COMMAND...
	local what=$1
	shift
	"$@" || die "$what"
}
told() { field "$1" <<<"$answer"; }

pins() { # pins TITLE PID...: who is charged
	printf '   %-38s %-10s %-16s %s\n' "who is charged (VmPin in /proc)" PID uid pinned
	local pid
	for pid in "${pid_of[engine]}" "$session" "$daemon"; do
		printf '     %-36s %-10s %-16s %s\n' "$(<"/proc/$pid/comm")" "$pid" "$(id -nu "$(uid_of "$pid")" 2>/dev/null || uid_of "$pid")" "$(mib "$(vm_pin "$pid")")"
	done
}

prologue() {
	title "kvreg: an unprivileged process registers memory with an RDMA device"
	baseline=$(mr_count) pinned=$(pinned_total)
	line 'kernel' "Linux $(uname -r)"
	client_start engine $ENGINE_UID
	must 'the device opens' engine device "$DEVICE"
	line 'RDMA device' "$(told device)"
	line 'the process ("engine")' "pid ${pid_of[engine]}, uid $(uid_of "${pid_of[engine]}"), CapEff $(cap "${pid_of[engine]}" Eff)"
	line 'its locked-memory limit' "$(awk '/^Max locked/ { print $4 / 1024 " KiB" }' "/proc/${pid_of[engine]}/limits")"
	line 'memory regions in the kernel now' "$baseline"
	line 'pinned by all processes now' "$(mib "$pinned")"
}

before() {
	title '1. Before: it asks the kernel itself'
	if say engine direct $SIZE; then
		die 'the kernel refuses 64 MiB: it did not (is the device one that does not pin?)'
	fi
	line "ibv_reg_mr of $(mib $SIZE)" "refused: $(told errno), ${answer##* bytes: }"
}

after() {
	local user=''
	title '2. After: the same process, served by kvregd'
	getent passwd kvreg-session >/dev/null || user=$'[daemon]\nsession_user = 64998:64998'
	daemon_start "$user" || die 'kvregd starts'
	must 'it connects' engine open
	must 'it passes its protection domain' engine attach 0
	must 'it makes a buffer' engine alloc $SIZE
	must 'kvregd registers it' engine register
	line "kvreg_register of $(mib $SIZE)" "ok"
	line 'address (its own)' "$(told address)"
	line 'lkey, rkey' "$(told lkey), $(told rkey)"
	must 'it asks who it is' engine whoami
	session=$(told session)
	pins
	holds 'the session is charged all of it' vm_pin_is "$session" $SIZE
	holds 'the process is charged nothing' vm_pin_is "${pid_of[engine]}" 0
	line 'memory regions in the kernel now' "$(mr_count)"
	line "kvregd's capabilities (CapPrm)" "$(cap "$daemon" Prm) = setgid, setuid, sys_resource"
	line "the session's capabilities (CapPrm)" "$(cap "$session" Prm) = none"
}

moves() { # moves WHEN SEED
	must "data moves $1" engine move "$2"
	line "RDMA WRITE and READ of $(mib "$(told moved)")" "every byte as sent"
}

data() {
	title '3. The data path is its own: its queue pairs, its addresses, no kvreg in between'
	must 'queue pairs connect' engine connect
	moves 'at first' 1
}

survives() {
	title '4. Killing us breaks nothing'
	kill -9 "$session"
	holds 'the session dies' eventually gone "$session"
	line "kill -9 $session (session)" 'gone'
	moves 'without the session' 2
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null
	line "kill -9 $daemon (kvregd)" 'gone'
	moves 'without kvregd' 3
}

epilogue() {
	title '5. It gives its region back itself, and every count is where it was'
	must 'it destroys its region' engine deregister
	line 'kvreg_deregister' 'ok (by its own device file: nobody else is left)'
	must 'its protection domain is empty' engine leave
	client_forget engine
	holds 'no memory region is left' eventually mr_count_is "$baseline"
	holds 'nothing is pinned' eventually pinned_total_is "$pinned"
	holds 'no session is left' eventually no_sessions
	line 'memory regions in the kernel now' "$(mr_count)"
	line 'pinned by all processes now' "$(mib "$(pinned_total)")"
	printf '\nkvreg demo: done, all as it should be.\n'
}

prologue
before
after
data
survives
epilogue
