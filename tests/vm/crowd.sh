#!/usr/bin/env bash
# 200 clients of 20 uids with 10 regions each, 40 of them killed at random: the others do not notice, and nothing is left.
set -u
# shellcheck source=tests/vm/lib.sh
. "$KVREG_SRC/tests/vm/lib.sh"

fds() { local f=(/proc/"$daemon"/fd/*); echo ${#f[@]}; }
fds_are() { [[ $(fds) == "$1" ]]; }
leaves_are() { [[ $(find /sys/fs/cgroup/kvregd-sessions -mindepth 1 -maxdepth 1 -type d | wc -l) == "$1" ]]; }

daemon_start
# The first connection of each socket makes what is kept at hand for the next.
client_start first 65534
say first open
client_kill first
eventually status_is sessions 0
eventually no_sessions
sleep 1
baseline=$(mr_count) pinned=$(pinned_total) files=$(fds)
ulimit -n 4096
ok 'survivors move bytes through every region' "$KVREG_BUILD/tests/vm/crowd" 200 20 10 40
ok 'no session is left' eventually no_sessions
ok 'MRs are what they were' eventually mr_count_is "$baseline"
ok 'pins are what they were' eventually pinned_total_is "$pinned"
ok 'status: no session' eventually status_is sessions 0
ok 'status: nothing granted' status_is granted 0
ok 'status: nobody was refused' status_is refused 0
ok 'no leaf is left' eventually leaves_are 0
ok "the daemon's files are what they were" eventually fds_are "$files"
ok 'the daemon stops in order' daemon_stop
sed 's/^/# /' "$RUN/daemon.log" | tail -n 5
plan
