/* SPDX-License-Identifier: Apache-2.0 */
#include "findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[] = {
		[VERDICT_PASS] = "PASS",
		[VERDICT_SKIP] = "SKIP",
		[VERDICT_WARN] = "WARN",
		[VERDICT_FAIL] = "FAIL",
	};

	return names[verdict];
}

static void add(struct findings *findings, enum verdict verdict, const char *subject,
		const char *format, va_list args)
{
	struct finding *all =
		reallocarray(findings->all, findings->count + 1, sizeof(*findings->all));
	struct finding *finding;

	if (!all) {
		findings->failed = true;
		return;
	}
	findings->all = all;
	finding = &all[findings->count++];
	*finding = (struct finding){ .check = findings->check, .verdict = verdict };
	snprintf(finding->subject, sizeof(finding->subject), "%s", subject);
	vsnprintf(finding->found, sizeof(finding->found), format, args);
}

void found(struct findings *findings, enum verdict verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(findings, verdict, "", format, args);
	va_end(args);
}

void found_about(struct findings *findings, enum verdict verdict, const char *subject,
		 const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(findings, verdict, subject, format, args);
	va_end(args);
}

void change(struct findings *findings, const char *format, ...)
{
	struct finding *last;
	va_list args;

	if (findings->failed || !findings->count)
		return;
	last = &findings->all[findings->count - 1];
	va_start(args, format);
	vsnprintf(last->change, sizeof(last->change), format, args);
	va_end(args);
}

enum verdict findings_worst(const struct findings *findings)
{
	enum verdict worst = VERDICT_PASS;

	for (size_t i = 0; i < findings->count; i++)
		if (findings->all[i].verdict != VERDICT_SKIP && findings->all[i].verdict > worst)
			worst = findings->all[i].verdict;
	return worst;
}

size_t findings_count(const struct findings *findings, enum verdict verdict)
{
	size_t n = 0;

	for (size_t i = 0; i < findings->count; i++)
		n += findings->all[i].verdict == verdict;
	return n;
}

void findings_fini(struct findings *findings)
{
	free(findings->all);
	*findings = (struct findings){ 0 };
}
