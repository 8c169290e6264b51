#!/usr/bin/env bash
# The supervisor reads no byte and takes no fd from whoever connects: its system calls over a whole test.
set -u
# shellcheck source=tests/vm/lib.sh
. "$KVREG_SRC/tests/vm/lib.sh"

# touched TRACE: the calls that read, or control, an fd between its accept and its close.
touched() {
	awk '
	/^accept4?\(/ && match($0, /= [0-9]+$/) { open[substr($0, RSTART + 2)] = 1; next }
	match($0, /^[a-z0-9_]+\([0-9]+/) {
		split(substr($0, 1, RLENGTH), call, "(")
		if (call[1] == "close") delete open[call[2]]
		else if (call[2] in open && call[1] ~ /^(p?readv?(64|2)?|recv.*|splice|tee|vmsplice|ioctl|mmap|sendfile)$/) print
	}' "$1"
}

accepts() { grep -cE '^accept4?\(.*= [0-9]+$' "$RUN/trace"; }

# The check itself must be able to fail.
control() {
	printf '%s\n' 'accept4(5, NULL, NULL, SOCK_CLOEXEC) = 9' 'recvmsg(9, {}, 0) = 3' 'close(9) = 0' 'read(9, "", 1) = 0' >"$RUN/control"
	ok 'the check sees one recvmsg, and not a read after close' test "$(touched "$RUN/control")" = 'recvmsg(9, {}, 0) = 3'
}

control
daemon_start $'[quota]\nsessions_per_uid = 2'
strace -qq -o "$RUN/trace" -p "$daemon" &
strace=$!
eventually test -e "$RUN/trace"
ok 'a client registers' client_ready a 65534 $((8 << 20))
say a connect
ok 'its data moves' say a move 1
ok 'an administrator asks' kvregctl regions
ok 'another client of that uid' client_ready b 65534 $((1 << 20))
client_start c 65534
ok 'a third one is refused' refused LIMIT_SESSIONS c open
client_kill b
ok 'the first deregisters' say a deregister
client_forget a
client_forget c
eventually no_sessions
kill "$strace"
wait "$strace" 2>/dev/null
ok '4 connections were accepted meanwhile' test "$(accepts)" = 4
touched "$RUN/trace" | head -n 5 | sed 's/^/# /'
ok 'no accepted fd was read, spliced, mapped or controlled' test -z "$(touched "$RUN/trace")"
ok 'every accepted fd was closed' test "$(accepts)" -le "$(grep -c '^close(' "$RUN/trace")"
ok 'the daemon stops in order' daemon_stop
plan
