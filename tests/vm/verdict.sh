# shellcheck shell=bash disable=SC2154
# What a finished run was: reads the results in --out and ends the program with its exit status. Sourced by vm.

# The guest's own log; when it could not write one, what the console saw.
keep_dmesg() {
	[[ -s $out/dmesg.log ]] || clean "$out/console.log" >"$out/dmesg.log"
}

# The first line of a crash of the guest's kernel, if there was one.
crash() {
	cat "$out/dmesg.log" "$out/console.log" |
		grep -aE -m1 'Kernel panic - |Oops|\[#[0-9]+\]|kernel BUG at |BUG: (unable|kernel|Bad|scheduling|sleeping|KFENCE)'
}

# One word for each script: ok, exit N, unfinished, not run.
outcome() {
	local name=$1 rc
	if [[ -s $out/$name.rc ]]; then
		rc=$(<"$out/$name.rc")
		if ((rc == 0)); then echo "$name ok"; else echo "$name exit $rc"; fi
	elif [[ -s $out/$name.log ]]; then
		echo "$name unfinished"
	else
		echo "$name did not run"
	fi
}

passed() { [[ $(cat "$out/$1.rc" 2>/dev/null) == 0 ]]; }

# After --quiet the last lines of a script that failed are shown: they say why.
show_tail() {
	((!quiet)) || tail -n 20 "$out/$1.log" | sed "s/^/$1: /" >&2
}

verdict() {
	local status=0 name words='' line
	((!quiet)) || echo >&2
	keep_dmesg
	for name in "${names[@]}"; do
		clean -i "$out/$name.log"
		words+="$(outcome "$name"), "
		passed "$name" || { status=1 && show_tail "$name"; }
	done
	if line=$(crash); then
		status=3 words+="the kernel crashed (${line:0:120}), "
	elif ((timed_out)); then
		status=124 words+="stopped at the time limit of $limit s, "
	elif [[ ! -e $out/.vm/done ]]; then
		status=3 words+="the guest ended early: $(tail -n 1 "$out/.vm/qemu.log" "$out/console.log" -q | tr '\n\r' '  '), "
	fi
	say "$words$(seconds), results in $out, exit $status"
	exit "$status"
}
