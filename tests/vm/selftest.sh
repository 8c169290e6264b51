#!/bin/bash
# What the harness promises to every script, checked in the guest: `tests/vm/vm tests/vm/selftest.sh`. Writes TAP. A
# check is a function below; it fails by its status, then what it printed follows as a comment; 77 skips it.
# shellcheck disable=SC2317
set -uo pipefail

nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"; }

# Prints what was expected and found where they differ.
is() { [[ $1 == "$2" ]] || { echo "expected: $1, found: $2"; return 1; }; }

kernel_is_the_one_asked_for() {
	declare -A release=([bookworm]=6.1. [trixie]=6.12.)
	[[ -v release[$VM_KERNEL] ]] || return 77
	[[ $(uname -r) == "${release[$VM_KERNEL]}"* ]] || { uname -r && return 1; }
}

there_are_as_many_rxe_devices_as_asked() {
	local expected='' found d
	for ((d = 0; d < VM_RXE; d++)); do expected+="rxe$d "; done
	found=$(cd /sys/class/infiniband 2>/dev/null && printf '%s ' *)
	is "$expected" "$found"
}

each_rxe_device_has_an_ipv4_gid() {
	local d gid
	for ((d = 0; d < VM_RXE; d++)); do
		gid=$(cat "/sys/class/infiniband/rxe$d/ports/1/gids/1")
		is "$(printf '0000:0000:0000:0000:0000:ffff:0a4d:%02x01' "$d")" "$gid" || return
	done
}

only_the_guests_own_interfaces_exist() {
	local expected=lo d
	for ((d = 0; d < VM_RXE; d++)); do expected+=" rdma$d"; done
	is "$expected" "$(cd /sys/class/net && echo *)"
}

uverbs_and_rdma_cm_are_open_to_all() {
	((VM_RXE)) || return 77
	is '666 666' "$(stat -c %a /dev/infiniband/uverbs0 /dev/infiniband/rdma_cm | xargs)"
}

uid_65534_can_use_the_device() {
	((VM_RXE)) || return 77
	nobody ibv_devinfo -d rxe0 | grep PORT_ACTIVE
}

# -c: the receiver compares every byte. Port 18515 is 4853 in the kernel's table, 0A is listening.
uid_65534_moves_data_over_rxe0() {
	((VM_RXE)) || return 77
	local server rc=0 log pingpong=(nobody timeout 20 ibv_rc_pingpong -c -n 50 -d rxe0 -g 1)
	log=$(mktemp)
	"${pingpong[@]}" >"$log" 2>&1 &
	server=$!
	for _ in {1..50}; do
		grep -qE ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6 && break
		sleep 0.1
	done
	"${pingpong[@]}" localhost || rc=$?
	wait "$server" || rc=$?
	cat "$log"
	((rc == 0)) && grep -q '^50 iters in' "$log"
}

a_child_cgroup_has_memory_pids_and_rdma() {
	local file status=0
	mkdir /sys/fs/cgroup/selftest
	for file in memory.max pids.max rdma.max rdma.current cgroup.kill; do
		ls "/sys/fs/cgroup/selftest/$file" || status=1
	done
	rmdir /sys/fs/cgroup/selftest
	return "$status"
}

# Without objects allowed, not even a protection domain can be had; the same program got one above.
rdma_max_limits_objects() {
	((VM_RXE)) || return 77
	local group=/sys/fs/cgroup/selftest out
	mkdir "$group"
	echo 'rxe0 hca_handle=10 hca_object=0' >"$group/rdma.max" || return
	# shellcheck disable=SC2016
	out=$(bash -c 'echo $$ >$0/cgroup.procs && exec timeout 10 ibv_rc_pingpong -d rxe0 -g 1' "$group" 2>&1)
	rmdir "$group"
	echo "$out"
	[[ $out == *"Couldn't allocate PD"* ]]
}

a_network_namespace_can_be_made() { is lo "$(unshare -nm bash -c 'mount -t sysfs none /mnt && ls /mnt/class/net')"; }

memlock_has_its_default_and_can_be_raised() {
	is 8192 "$(ulimit -l)" && is unlimited "$(ulimit -l unlimited && ulimit -l)"
}

# perl, as every Debian has it; 319 is memfd_create, 2 MFD_ALLOW_SEALING.
memfd_works() {
	# shellcheck disable=SC2016
	perl -e 'my $n = "t"; my $f = syscall(319, $n, 2); my $h; open($h, "+<&=$f") && syswrite($h, "x") or die $!'
}

the_session_user_exists() {
	local passwd group
	passwd=$(getent passwd kvreg-session) || return
	group=$(getent group kvreg-session) || return
	is "$(cut -d: -f4 <<<"$passwd")" "$(cut -d: -f3 <<<"$group")" && (($(cut -d: -f3 <<<"$passwd") < 1000))
}

build_and_source_are_open_to_uid_65534() {
	is /opt/kvreg "$KVREG_BUILD" && is /opt/kvreg-src "$KVREG_SRC" &&
		nobody ls /opt/kvreg && nobody grep -q KVREG_BUILD /opt/kvreg-src/tests/vm/vm
}

results_reach_the_host_by_9p() {
	is 9p "$(findmnt -n -o FSTYPE "$KVREG_OUT")" && echo "$$" >"$KVREG_OUT/selftest.txt" &&
		is "$$" "$(cat /opt/kvreg-out/selftest.txt)"
}

etc_is_writable() { echo kvreg >/etc/kvreg-selftest && rm /etc/kvreg-selftest; }

tmp_run_and_shm_are_tmpfs() { is 'tmpfs tmpfs tmpfs' "$(stat -f -c %T /tmp /run /dev/shm | xargs)"; }

stderr_can_be_opened_anew() { is hello "$(bash -c 'echo hello >/dev/stderr' 2>&1)"; }

pid_1_is_the_one_asked_for() {
	local expected=run
	((!VM_SYSTEMD)) || expected=systemd
	is "$expected" "$(cat /proc/1/comm)"
}

# The second unit has the default dependencies, which pull in what real services would.
systemd_run_waits_and_returns_the_status() {
	((VM_SYSTEMD)) || return 77
	systemd-run --wait -q true || return
	# shellcheck disable=SC2016
	systemd-run --wait -q -p User=kvreg-session bash -c '[[ $(id -un) == kvreg-session ]] && exit 7'
	is 7 $?
}

tests=(
	kernel_is_the_one_asked_for
	pid_1_is_the_one_asked_for
	there_are_as_many_rxe_devices_as_asked
	each_rxe_device_has_an_ipv4_gid
	only_the_guests_own_interfaces_exist
	uverbs_and_rdma_cm_are_open_to_all
	uid_65534_can_use_the_device
	uid_65534_moves_data_over_rxe0
	a_child_cgroup_has_memory_pids_and_rdma
	rdma_max_limits_objects
	a_network_namespace_can_be_made
	memlock_has_its_default_and_can_be_raised
	memfd_works
	the_session_user_exists
	build_and_source_are_open_to_uid_65534
	results_reach_the_host_by_9p
	etc_is_writable
	tmp_run_and_shm_are_tmpfs
	stderr_can_be_opened_anew
	systemd_run_waits_and_returns_the_status
)

failed=0
echo "1..${#tests[@]}"
for ((n = 0; n < ${#tests[@]}; n++)); do
	rc=0
	output=$("${tests[n]}" 2>&1) || rc=$?
	words="$((n + 1)) - ${tests[n]//_/ }"
	case $rc in
	0) echo "ok $words" ;;
	77) echo "ok $words # SKIP not asked for" ;;
	*)
		failed=1
		echo "not ok $words"
		printf '%s\n' "$output" | sed 's/^/# /'
		;;
	esac
done
exit $failed
