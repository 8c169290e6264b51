/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/confine.h"

#include <errno.h>
#include <sys/prctl.h>

#include "daemon/session/filter.h"
#include "daemon/session/landlock.h"
#include "proto/fdset.h"
#include "proto/procfs.h"

/* The leak check of a sanitizer build reads /proc/self, which is then root's. */
#ifdef __SANITIZE_ADDRESS__
#define DUMPABLE 1
#else
#define DUMPABLE 0
#endif

int confine_identity(void)
{
	struct proc_status status;
	int r;

	r = proc_status(0, &status);
	if (r < 0)
		return r;
	if (status.cap_eff | status.cap_prm | status.cap_inh | status.cap_amb)
		return -EPERM;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, DUMPABLE, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

#ifdef KVREG_NO_FILTER

static bool can_be_wide(void)
{
	return true;
}

static int be_wide(int *ret_pin)
{
	(void)ret_pin;
	return 0;
}

static int be_narrow(void)
{
	return 0;
}

#else

static bool can_be_wide(void)
{
	return landlock_works();
}

static int be_wide(int *ret_pin)
{
	int r = landlock_allow_cuda(ret_pin);

	return r < 0 ? r : filter_load(FILTER_WIDE);
}

/* Where the kernel has no Landlock the filter, which opens nothing, has to do. */
static int be_narrow(void)
{
	int r = landlock_works() ? landlock_deny() : 0;

	return r < 0 ? r : filter_load(FILTER_NARROW);
}

#endif

int confine_calls(bool may_be_wide, struct confinement *ret_confinement)
{
	struct confinement c = { .wide = may_be_wide && can_be_wide(), .pin = -1 };
	int r = c.wide ? be_wide(&c.pin) : be_narrow();

	if (r == 0)
		*ret_confinement = c;
	return r;
}

int confine_narrow(struct confinement *c)
{
	int r = be_narrow();

	if (r < 0)
		return r;
	c->wide = false;
	fd_close(&c->pin);
	return 0;
}
