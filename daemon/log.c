/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

/* The only state of file scope in the supervisor. */
static struct {
	enum log_level level;
	bool to_syslog;
	bool to_journal;
} sink = { .level = LOG_LEVEL_INFO };

static const struct {
	const char *name;
	int priority;
} levels[] = {
	[LOG_LEVEL_ERROR] = { "error", LOG_ERR },
	[LOG_LEVEL_WARNING] = { "warning", LOG_WARNING },
	[LOG_LEVEL_INFO] = { "info", LOG_INFO },
	[LOG_LEVEL_DEBUG] = { "debug", LOG_DEBUG },
};

void log_open(enum log_level level, int detached)
{
	sink.level = level;
	sink.to_syslog = detached;
	/* systemd sets it for units whose standard error is the journal. */
	sink.to_journal = secure_getenv("JOURNAL_STREAM") != NULL;
	if (detached)
		openlog("kvregd", LOG_PID, LOG_DAEMON);
}

int log_level_find(const char *name)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strcmp(levels[i].name, name) == 0)
			return (int)i;
	return -EINVAL;
}

void log_line(enum log_level level, const char *format, ...)
{
	char line[1024];
	int saved = errno;
	va_list args;

	if (level > sink.level)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (sink.to_syslog)
		syslog(levels[level].priority, "%s", line);
	else if (sink.to_journal)
		fprintf(stderr, "<%d>%s\n", levels[level].priority, line);
	else
		fprintf(stderr, "kvregd: %s: %s\n", levels[level].name, line);
	errno = saved;
}
