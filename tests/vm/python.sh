#!/usr/bin/env bash
# The Python module on real verbs, with the protection domains of python3-pyverbs: uid 65534, ulimit -l 64.
set -u
# shellcheck source=tests/vm/lib.sh
. "$KVREG_SRC/tests/vm/lib.sh"

baseline=$(mr_count)
daemon_start
(
	ulimit -l 64
	LD_LIBRARY_PATH=$KVREG_BUILD exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --no-new-privs \
		/usr/bin/python3 -B "$KVREG_SRC/tests/python/test_verbs.py" rxe0 1
)
ok 'the program ended well' test $? == 0
ok 'no session is left' eventually no_sessions
ok 'no MR is left' mr_count_is "$baseline"
ok 'all books are zero' status_is granted 0
ok 'the daemon stops in order' daemon_stop
plan
