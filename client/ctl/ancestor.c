/* SPDX-License-Identifier: Apache-2.0 */
#include "ancestor.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exam.h"
#include "proto/codec.h"
#include "proto/fdset.h"

/* A process may end meanwhile and its number be another's: a line of ancestors has an end here. */
#define ANCESTORS_MAX 64
#define TEXT_MAX      8192u

/* Reads PROC/WHO/FILE as far as it fits. Return: false if it cannot be read. */
static bool read_file(const struct host *host, const char *who, const char *file, char *ret_text)
{
	_cleanup_fd_ int fd = -1;
	char path[512];
	size_t used = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s/%s", host->proc, who, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while ((n = read(fd, ret_text + used, TEXT_MAX - 1 - used)) > 0)
		used += (size_t)n;
	ret_text[used] = '\0';
	return n >= 0;
}

/* Of PROC/WHO/status: 0 if there is no parent, or none to be seen. */
static uint32_t read_parent(const struct host *host, const char *who, char *text)
{
	const char *line = read_file(host, who, "status", text) ? strstr(text, "\nPPid:") : NULL;

	return line ? (uint32_t)strtoul(line + strlen("\nPPid:"), NULL, 10) : 0;
}

static void read_comm(const struct host *host, const char *who, char *text, struct ancestor *a)
{
	if (!read_file(host, who, "comm", text))
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	text_clean(a->comm, sizeof(a->comm), text);
}

/* "Max locked memory         65536                65536                bytes" */
static bool read_hard(const struct host *host, const char *who, char *text, uint64_t *ret_hard)
{
	static const char key[] = "\nMax locked memory";
	char hard[32];
	const char *line;

	line = read_file(host, who, "limits", text) ? strstr(text, key) : NULL;
	if (!line || sscanf(line + strlen(key), "%*s %31s", hard) != 1)
		return false;
	*ret_hard = strcmp(hard, "unlimited") != 0 ? strtoull(hard, NULL, 10) : RLIM_INFINITY;
	return true;
}

bool ancestor_find(const struct host *host, struct ancestor *ret_ancestor)
{
	char own[TEXT_MAX], text[TEXT_MAX], who[16] = "self";
	struct ancestor a;

	if (!read_file(host, who, "cgroup", own))
		return false;
	for (int i = 0; i < ANCESTORS_MAX; i++) {
		a = (struct ancestor){ .pid = read_parent(host, who, text) };
		if (!a.pid)
			return false;
		snprintf(who, sizeof(who), "%" PRIu32, a.pid);
		if (!read_file(host, who, "cgroup", text) || strcmp(text, own) != 0)
			return false;
		if (!read_hard(host, who, text, &a.hard))
			return false;
		if (a.hard > host->memlock.rlim_max) {
			read_comm(host, who, text, &a);
			*ret_ancestor = a;
			return true;
		}
	}
	return false;
}
