/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_DAEMON_LOG_H
#define KVREG_DAEMON_LOG_H
/*
 * The supervisor's log: one line an event, to standard error (with the journal's priority prefix
 * when it is the journal) or, detached, to syslog. Text from clients is cleaned by who holds it.
 * What a client can cause is logged through books_may_log(), so that no client can flood it.
 */
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/** log_open() - @detached: to syslog. */
void log_open(enum log_level level, int detached);

/** log_level_find() - "error", "warning", "info", "debug". Return: the level or -EINVAL. */
int log_level_find(const char *name);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
