# shellcheck shell=bash disable=SC2154,SC2034
# The emulated machine: start, watch, stop. Sourced by vm, whose variables it reads. It owns two processes: QEMU, which
# the kernel kills when vm dies in whatever way, and the follower, which ends when QEMU has.

qemu='' follower='' up='' timed_out=0 tenths=0

# The kernel's arguments. The clock of the host is the guest's, so its time stamp counter needs no watchdog; stalls are
# the emulation's; and a crash ends the guest at once.
kernel_arguments() {
	local noise=quiet
	((!verbose)) || noise=''
	echo "console=ttyS0 $noise panic=-1 oops=panic nowatchdog mitigations=off tsc=reliable $append"
}

launch() {
	exec setpriv --pdeathsig KILL -- qemu-system-x86_64 -name kvreg-vm \
		-accel tcg,thread=multi -cpu max -m "$memory" -smp "$cpus" \
		-nodefaults -nic none -display none -no-reboot -serial "file:$out/console.log" \
		-kernel "$kernel_dir/vmlinux" -initrd "$initramfs" -append "$(kernel_arguments)" \
		-virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
		-virtfs "local,path=${out//,/,,},mount_tag=out,security_model=none,multidevs=remap" \
		>"$out/.vm/qemu.log" 2>&1
}

# No terminal escape sequences, no carriage returns. A filter, or given `-i FILE` changes that.
# shellcheck disable=SC2120
clean() {
	local csi='\x1b\[[0-9;?]*[ -\x2f]*[@-~]' osc='\x1b\][^\x07]*\x07' other='\x1b([()].|[=>78cM])'
	LC_ALL=C sed -u -E "s,$csi|$osc|$other|\r,,g" "$@"
}

# Copies the logs to stdout while they grow, until QEMU is gone.
follow() {
	local files=() name
	((!verbose)) || files+=("$out/console.log")
	for name in "${names[@]}"; do files+=("$out/$name.log"); done
	tail -q -n +1 -s 0.2 -f --pid="$qemu" "${files[@]}" 2>/dev/null | clean -
}

start() {
	((quiet)) || say "booting Linux $version ($suite, $( ((systemd)) && echo 'systemd, ')${cpus} cpus, $memory, rxe $rxe): ${names[*]}"
	began=${EPOCHREALTIME/./}
	launch &
	qemu=$!
	((quiet)) || { follow & follower=$!; }
}

# Sets tenths, of a second since the start.
now() { tenths=$(((${EPOCHREALTIME/./} - began) / 100000)); }

seconds() { echo "$((tenths / 10)).$((tenths % 10)) s"; }

running() { kill -0 "$qemu" 2>/dev/null; }

announce_up() {
	[[ -z $up && -e $out/.vm/up ]] || return 0
	up=1
	((quiet)) || say "up after $(seconds)"
}

# Until the guest has switched itself off or the limit passed.
watch() {
	local turn=0
	while running; do
		now
		announce_up
		if ((tenths >= limit * 10)); then
			timed_out=1
			return
		fi
		((!quiet || ++turn % 10)) || printf . >&2
		sleep 0.2
	done
	now
	announce_up
}

# Safe at any time and more than once.
stop() {
	[[ -n $qemu ]] || return 0
	kill -KILL "$qemu" 2>/dev/null || true
	wait "$qemu" 2>/dev/null || true
	qemu=''
	[[ -z $follower ]] || wait "$follower" || true
}
