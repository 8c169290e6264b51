/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/confine.h"

#include <errno.h>
#include <sys/prctl.h>

#include "proto/procfs.h"

int confine(void)
{
	struct proc_status status;
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	r = proc_status(0, &status);
	if (r < 0)
		return r;
	if (status.cap_eff | status.cap_prm | status.cap_inh | status.cap_amb)
		return -EPERM;
	return 0;
}
