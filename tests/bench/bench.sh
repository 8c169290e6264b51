#!/usr/bin/env bash
# In the guest: a brokered registration against ibv_reg_mr, on real verbs. Its JSON is verbs.json in KVREG_OUT.
set -u
# shellcheck source=tests/vm/lib.sh
. "$KVREG_SRC/tests/vm/lib.sh"

# A share of 2 GiB that holds the largest case.
daemon_start $'[quota]\ntotal = 80%\nper_uid = 60%' || exit 1
rc=0
"$KVREG_BUILD/tests/bench/bench-verbs" --json "$KVREG_OUT/verbs.json" || rc=$?
eventually no_sessions && daemon_stop || rc=1
exit "$rc"
