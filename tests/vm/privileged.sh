#!/usr/bin/env bash
# Integration tests again, where root may raise limits (prlimit of each session), sessions have cgroup leaves, and the
# kernel is an older one (6.1 knows no SO_PEERPIDFD).
set -u
rc=0
for test in register quota environment lifecycle; do
	CMOCKA_MESSAGE_OUTPUT=TAP "$KVREG_BUILD/tests/integration/test-$test" || rc=1
done
exit $rc
