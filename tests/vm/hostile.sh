#!/usr/bin/env bash
# The integration tests on real verbs, as root with leaves: what a client can do wrong, the kernel answers here.
set -u
rc=0
export KVREG_TEST_DEVICE=verbs
for program in "$KVREG_BUILD"/tests/integration/test-*; do
	CMOCKA_MESSAGE_OUTPUT=TAP "$program" || rc=1
done
exit $rc
