/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_FAULTS_H
#define KVREG_FAULTS_H
/*
 * Where a fault on purpose can be put: a [test ...] section of the configuration names the stage,
 * the supervisor tells the session, the session does it. Each stands for a call of the kernel, which
 * takes long or fails; what comes of that is nobody's special case.
 */
enum fault_stage {
	FAULT_CONNECT,    /* the start of a session; a delay: between Hello and its answer */
	FAULT_ATTACH,     /* the look-up of the protection domain */
	FAULT_IMPORT,     /* F_GET_SEALS */
	FAULT_MAP,        /* mmap() of a buffer */
	FAULT_POPULATE,   /* MADV_POPULATE_WRITE, from POPULATE_MIN on */
	FAULT_REGISTER,   /* REG_MR */
	FAULT_DEREGISTER, /* MR_DESTROY */
	FAULT_STAGES      /* their number */
};

#endif
