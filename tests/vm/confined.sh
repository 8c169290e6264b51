#!/usr/bin/env bash
# Owning a session owns nothing: a session that runs its attacker's code, and a race against its start.
set -u
# shellcheck source=tests/vm/lib.sh
. "$KVREG_SRC/tests/vm/lib.sh"

# The real supervisor starts the kvregd-session beside it.
KVREG_REAL=$KVREG_BUILD
KVREG_BUILD=$KVREG_BUILD/attack

attack_fails() { # attack_fails NAME PID
	! say a attack "$1" "$2" && [[ $answer == *"attack $1: EPERM"* || $answer == *"attack $1: EACCES"* ]]
}

daemon_start
KVREG_BUILD=$KVREG_REAL
ok 'a victim' client_ready v 1234 $((1 << 20))
say v whoami
victim=$(field session <<<"$answer")
ok 'an owned session' client_ready a 65534 $((1 << 20))
say a whoami
ok 'both sessions run as the same user' test "$(uid_of "$victim")" = "$(uid_of "$(field session <<<"$answer")")"
for name in open fd kill killall ptrace memory prlimit memlock exec mmap mprotect socket fork setuid userns getfd nice dumpable ioctl; do
	ok "owned: $name fails" attack_fails $name "$victim"
done
ok 'owned: it serves its own client still' say a deregister
ok 'the victim is untouched' say v deregister
client_kill a
client_kill v
eventually no_sessions

# Races against 200 starts, by the user of sessions itself and by another one.
race() { # race UID WHO
	local i served=0
	exec {hold}> >(exec setpriv --reuid="$1" --regid="$1" --clear-groups "$KVREG_BUILD/tests/vm/racer" >"$RUN/race")
	client_start r 65534
	for ((i = 0; i < 100; i++)); do
		say r open && served=$((served + 1))
		say r close
	done
	ok "$2: 100 sessions were started and served" test "$served" = 100
	client_forget r
	eventually no_sessions
	exec {hold}>&-
	eventually test -s "$RUN/race"
	sed 's/^/# /' "$RUN/race"
	ok "$2: it tried to seize them" test "$(field tries <"$RUN/race")" -gt 0
	ok "$2: it seized none" test "$(field seized <"$RUN/race")" = 0
}
race "$(id -u kvreg-session)" "the session user"
race 4321 'another user'
ok 'the daemon stops in order' daemon_stop
grep -v 'ended by signal' "$RUN/daemon.log" | sed 's/^/# /'
plan
