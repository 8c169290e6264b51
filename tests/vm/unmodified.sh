#!/usr/bin/env bash
# Programs that were never told about kvreg, from Debian's packages and of the tests, as uid 65534: each fails without
# us for locked memory, and passes with libkvreg-preload.so and with kvreg-run --memlock, both ends so.
set -u
# shellcheck source=tests/vm/lib.sh
. "$KVREG_SRC/tests/vm/lib.sh"
MIB=$((1 << 20))
STRANGER=$KVREG_BUILD/tests/unmodified/stranger
port=20000
ip=10.77.0.1

# as LIMIT COMMAND...: as an ordinary user with this limit of locked memory (KiB).
as() {
	local limit=$1
	shift
	(
		ulimit -l "$limit"
		exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --no-new-privs timeout 20 "$@"
	)
}

listens() { ss -Hltn "sport = :$port" | grep -q . || ! kill -0 "$server" 2>/dev/null; }

# pair LIMIT WRAPPER SERVER-COMMAND -- MORE ARGUMENTS OF THE CLIENT: true when both ends end with 0. Outputs are in
# $RUN/a.out and $RUN/b.out. In the commands, PORT stands for the port.
pair() {
	local limit=$1 wrapper=$2 command=() rc
	shift 2
	port=$((port + 1))
	while [[ $1 != -- ]]; do command+=("${1//PORT/$port}") && shift; done
	shift
	# shellcheck disable=SC2086
	as "$limit" $wrapper "${command[@]}" >"$RUN/a.out" 2>&1 &
	server=$!
	eventually listens
	# shellcheck disable=SC2086
	as "$limit" $wrapper "${command[@]}" "$@" >"$RUN/b.out" 2>&1
	rc=$?
	[[ $rc == 0 ]] || kill "$server" 2>/dev/null
	wait "$server" && [[ $rc == 0 ]]
}
