/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/faults.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

/* Of the process: it serves one client. What calls fault() knows its buffer or device, no more. */
static struct {
	struct control *control; /* NULL: there are no faults */
	const struct device_ops *device;
	struct device_ops wrapped;
	struct {
		uint32_t delay_ms;
		int errnum;
		uint32_t count;
	} stages[FAULT_STAGES];
	uint32_t mrs, max_mr;
	uint64_t max_mr_size;
} faults;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static void hold(enum fault_stage stage, uint32_t ms)
{
	Kvreg__Held held = KVREG__HELD__INIT;
	Kvreg__Up up = KVREG__UP__INIT;
	uint64_t end = now_ms() + ms;
	sigset_t all;

	held.stage = stage;
	up.body_case = KVREG__UP__BODY_HELD;
	up.held = &held;
	(void)control_send(faults.control, &up);
	sigfillset(&all);
	for (uint64_t now = now_ms(); now < end; now = now_ms()) {
		struct timespec left = { (time_t)((end - now) / 1000),
					 (long)((end - now) % 1000 * 1000000) };

		(void)ppoll(NULL, 0, &left, &all);
	}
}

int fault(enum fault_stage stage)
{
	int saved = errno;

	if (!faults.control)
		return 0;
	if (faults.stages[stage].delay_ms > 0)
		hold(stage, faults.stages[stage].delay_ms);
	errno = saved;
	if (faults.stages[stage].count == 0)
		return 0;
	faults.stages[stage].count--;
	errno = faults.stages[stage].errnum;
	return -1;
}

/* ---- the device ---- */

static int faulty_attach(struct device_pd *pd, struct failure *f)
{
	if (fault(FAULT_ATTACH) < 0)
		return device_refuse_pd(pd, errno, f);
	return faults.device->attach(pd, f);
}

static int faulty_reg(const struct device_pd *pd, const struct uverbs_reg *reg,
		      struct uverbs_mr *ret_mr)
{
	int r;

	if (fault(FAULT_REGISTER) < 0)
		return -errno;
	if (faults.max_mr && faults.mrs >= faults.max_mr)
		return -EINVAL; /* as rxe at max_mr */
	if (faults.max_mr_size && reg->length > faults.max_mr_size)
		return -ENOMEM; /* as bnxt_re of Linux 6.1 */
	r = faults.device->reg(pd, reg, ret_mr);
	faults.mrs += r == 0;
	return r;
}

static int faulty_dereg(const struct device_pd *pd, const struct uverbs_mr *mr)
{
	int r;

	if (fault(FAULT_DEREGISTER) < 0)
		return -errno;
	r = faults.device->dereg(pd, mr);
	faults.mrs -= r == 0 || r == -ESTALE;
	return r;
}

const struct device_ops *faults_init(const Kvreg__Faults *words, const struct device_ops *device,
				     struct control *control)
{
	faults.control = control;
	faults.device = device;
	faults.wrapped = *device;
	faults.wrapped.attach = faulty_attach;
	faults.wrapped.reg = faulty_reg;
	faults.wrapped.dereg = faulty_dereg;
	faults.max_mr = words->max_mr;
	faults.max_mr_size = words->max_mr_size;
	for (size_t i = 0; i < words->n_stages; i++) {
		const Kvreg__StageFault *stage = words->stages[i];

		if (stage->stage >= FAULT_STAGES)
			continue;
		faults.stages[stage->stage].delay_ms = stage->delay_ms;
		faults.stages[stage->stage].errnum = (int)stage->errnum;
		faults.stages[stage->stage].count = stage->count;
	}
	return &faults.wrapped;
}
