/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvregctl doctor: why memory can or cannot be registered, here and by whoever asks. It looks at
 * this process, the devices and the daemon, needs no privilege and neither device nor daemon, and
 * changes nothing. What is asked of the host is read once (exam.h), then the checks of the table
 * judge it in turn.
 */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "complain.h"
#include "exam.h"
#include "format.h"
#include "json.h"
#include "table.h"

static const struct check {
	const char *name; /* in the JSON too: it does not change */
	void (*run)(struct exam *exam);
} checks[] = {
	{ "memlock", check_memlock },
	{ "origin", check_origin },
	{ "capability", check_capability },
	{ "devices", check_devices }, /* adds one named uverbs for each device */
	{ "daemon", check_daemon },
	{ "quota", check_quota },
	{ "fits-direct", check_fits_direct },
	{ "fits-brokered", check_fits_brokered },
};

/* ---------------------------------------------------------------- report */

static const char *verdict_color(enum verdict verdict)
{
	static const char *const colors[] = {
		[VERDICT_PASS] = "\033[32m",
		[VERDICT_SKIP] = "\033[2m",
		[VERDICT_WARN] = "\033[33m",
		[VERDICT_FAIL] = "\033[31m",
	};

	return colors[verdict];
}

static void print_findings(const struct findings *findings, bool color)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *f = &findings->all[i];

		printf("%s%s%s  %-13s  %s\n", color ? verdict_color(f->verdict) : "",
		       verdict_name(f->verdict), color ? "\033[0m" : "", f->check, f->found);
		if (f->change[0])
			printf("%21s%s\n", "change: ", f->change);
	}
	printf("%zu passed, %zu warned, %zu failed\n", findings_count(findings, VERDICT_PASS),
	       findings_count(findings, VERDICT_WARN), findings_count(findings, VERDICT_FAIL));
}

static void write_findings(const struct exam *exam)
{
	const struct findings *findings = &exam->findings;
	struct json json = { .out = stdout };

	json_object(&json, NULL);
	json_text(&json, "verdict", verdict_name(findings_worst(findings)));
	if (exam->bytes)
		json_number(&json, "for", exam->bytes);
	else
		json_text(&json, "for", NULL);
	json_number(&json, "nics", exam->nics);
	json_array(&json, "checks");
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *f = &findings->all[i];

		json_object(&json, NULL);
		json_text(&json, "check", f->check);
		json_text(&json, "subject", f->subject[0] ? f->subject : NULL);
		json_text(&json, "verdict", verdict_name(f->verdict));
		json_text(&json, "found", f->found);
		json_text(&json, "change", f->change[0] ? f->change : NULL);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
}

int doctor_run(const struct options *options)
{
	struct host host;
	struct exam exam = { .host = &host,
			     .bytes = options->fit,
			     .nics = options->nics ? options->nics : 1 };
	int status = CTL_OK;

	if (options->nics && !options->fit)
		return complain(CTL_USAGE, "--nics says with how many devices --for BYTES are "
					   "registered");
	host_here(&host);
	host.socket = options->socket;
	exam_read(&exam);
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		exam.findings.check = checks[i].name;
		checks[i].run(&exam);
	}
	if (exam.findings.failed)
		status = complain(CTL_FAILED, "out of memory");
	else if (options->json)
		write_findings(&exam);
	else
		print_findings(&exam.findings, colors_wanted(options));
	if (!status && findings_worst(&exam.findings) == VERDICT_FAIL)
		status = CTL_UNFIT;
	findings_fini(&exam.findings);
	return status;
}
