#!/usr/bin/env bash
# Owning a session owns nothing: a session that runs its attacker's code, and a race against its start.
set -u
# shellcheck source=tests/vm/lib.sh
. "$KVREG_SRC/tests/vm/lib.sh"

# The real supervisor starts the kvregd-session beside it.
KVREG_REAL=$KVREG_BUILD

attack_fails() { # attack_fails NAME PID
	! say a attack "$1" "$2" && [[ $answer == *"attack $1: EPERM"* || $answer == *"attack $1: EACCES"* ]]
}

attacks=$(sed -n 's/^ATTACK(\([a-z0-9]*\),.*/\1/p' "$KVREG_SRC/tests/attack/attacks.def")

# owned WHAT [CONFIG TEXT]: every attack from a session whose client did not ask for CUDA.
owned() {
	local what=$1 victim name
	KVREG_BUILD=$KVREG_REAL/attack
	daemon_start "${2-}"
	KVREG_BUILD=$KVREG_REAL
	ok "$what: a victim" client_ready v 1234 $((1 << 20))
	say v whoami
	victim=$(field session <<<"$answer")
	ok "$what: an owned session" client_ready a 65534 $((1 << 20))
	say a whoami
	ok "$what: both run as the same user" test "$(uid_of "$victim")" = "$(uid_of "$(field session <<<"$answer")")"
	for name in $attacks; do
		ok "$what: $name fails" attack_fails "$name" "$victim"
	done
	ok "$what: it serves its own client still" say a deregister
	ok "$what: the victim is untouched" say v deregister
	client_kill a
	client_kill v
	eventually no_sessions
}

ok 'there are attacks' test "$(wc -w <<<"$attacks")" -gt 20
owned 'without CUDA'
ok 'the daemon stops in order' daemon_stop
owned 'not asked for CUDA' $'[daemon]\ncuda_sessions = on'

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
ok 'a device file that CUDA sessions may open' mknod -m 666 /dev/nvidia0 c 1 3
plan

# Sessions that are asked for CUDA.
CMOCKA_MESSAGE_OUTPUT=TAP "$KVREG_BUILD/tests/integration/test-confine" || failures=1
((failures == 0))
