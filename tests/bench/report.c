/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "check.h"

#define NAME_WIDTH 60

/* NULL: no file was asked for. */
static FILE *json;

static void machine(const char *title)
{
	struct rlimit memlock = { 0 }, files = { 0 };
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	double load = 0;
	struct utsname host;

	require(uname(&host) == 0);
	getrlimit(RLIMIT_MEMLOCK, &memlock);
	getrlimit(RLIMIT_NOFILE, &files);
	(void)getloadavg(&load, 1);
	printf("%s: Linux %s, %ld cpus, load %.1f, kvreg %s\n", title, host.release, cpus, load,
	       KVREG_VERSION);
	if (json)
		fprintf(json,
			"{\"run\":\"%s\",\"version\":\"%s\",\"kernel\":\"%s\",\"cpus\":%ld,"
			"\"load\":%.2f,\"memlock\":%llu,\"nofile\":%llu}\n",
			title, KVREG_VERSION, host.release, cpus, load,
			(unsigned long long)memlock.rlim_cur, (unsigned long long)files.rlim_cur);
}

void report_open(const char *title, const char *path)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (path) {
		json = fopen(path, "we");
		if (!json)
			perror(path);
		require(json);
	}
	machine(title);
	printf("\n%-*s %10s %10s  %-21s  %s\n", NAME_WIDTH, "", "median us", "p99 us",
	       "ratio (min..max)", "ratio of p99 (min..max)");
}

static void case_line(const char *name)
{
	static char last[128];

	if (strcmp(last, name) != 0)
		printf("\n%s\n", name);
	snprintf(last, sizeof(last), "%s", name);
}

static void spread_text(char *ret_text, size_t size, struct spread s)
{
	snprintf(ret_text, size, "%.2f (%.2f..%.2f)", s.middle, s.low, s.high);
}

static const char *verdict(double value, double goal)
{
	return value <= goal ? "met" : "MISSED";
}

static void bare_row(const char *name, double median, double p99)
{
	printf("  %-*s %10.1f %10.1f\n", NAME_WIDTH - 2, name, median, p99);
}

static void row(const struct way *way, double median, double p99, struct spread ratio,
		struct spread ratio_p99)
{
	double judged = way->goal_is_p99 ? ratio_p99.middle : ratio.middle;
	char texts[2][64];

	spread_text(texts[0], sizeof(texts[0]), ratio);
	spread_text(texts[1], sizeof(texts[1]), ratio_p99);
	printf("  %-*s %10.1f %10.1f  %-21s  %-21s", NAME_WIDTH - 2, way->name, median, p99,
	       texts[0], texts[1]);
	if (way->goal > 0)
		printf("  goal %s%.1f: %s", way->goal_is_p99 ? "of p99 " : "", way->goal,
		       verdict(judged, way->goal));
	printf("\n");
}

static void json_row(const struct contest *contest, const struct way *way, double median,
		     double p99, struct spread ratio, struct spread ratio_p99)
{
	fprintf(json,
		"{\"case\":\"%s\",\"way\":\"%s\",\"median_us\":%.3f,\"p99_us\":%.3f,"
		"\"rounds\":%zu,\"times\":%zu",
		contest->name, way->name, median, p99, contest->rounds, contest->times);
	if (&contest->ways[way->against] != way)
		fprintf(json,
			",\"against\":\"%s\",\"ratio\":%.3f,\"ratio_min\":%.3f,\"ratio_max\":%.3f,"
			"\"p99_ratio\":%.3f,\"p99_ratio_min\":%.3f,\"p99_ratio_max\":%.3f",
			contest->ways[way->against].name, ratio.middle, ratio.low, ratio.high,
			ratio_p99.middle, ratio_p99.low, ratio_p99.high);
	if (way->goal > 0)
		fprintf(json, ",\"%s\":%.2f", way->goal_is_p99 ? "p99_goal" : "goal", way->goal);
	fprintf(json, "}\n");
}

void report_contest(const struct contest *contest)
{
	static struct figures figures[WAYS_MAX];
	size_t n = contest->rounds;

	case_line(contest->name);
	contest_run(contest, figures);
	for (size_t i = 0; i < contest->n_ways; i++) {
		const struct way *way = &contest->ways[i];
		const struct figures *mine = &figures[i], *bare = &figures[way->against];
		struct spread ratio = spread_of_ratios(mine->median, bare->median, n);
		struct spread ratio_p99 = spread_of_ratios(mine->p99, bare->p99, n);
		double median = spread_of(mine->median, n).middle;
		double p99 = spread_of(mine->p99, n).middle;

		if (way->against == i)
			bare_row(way->name, median, p99);
		else
			row(way, median, p99, ratio, ratio_p99);
		if (json)
			json_row(contest, way, median, p99, ratio, ratio_p99);
	}
}

void report_value(const char *name, const char *what, const char *unit, struct spread value,
		  double goal)
{
	case_line(name);
	printf("  %-*s %10.1f %s", NAME_WIDTH - 2, what, value.middle, unit);
	if (value.low < value.high)
		printf(" (%.1f..%.1f)", value.low, value.high);
	if (goal > 0)
		printf("  goal %.0f: %s", goal, verdict(value.middle, goal));
	printf("\n");
	if (!json)
		return;
	fprintf(json,
		"{\"case\":\"%s\",\"what\":\"%s\",\"unit\":\"%s\",\"value\":%.3f,\"min\":%.3f,"
		"\"max\":%.3f",
		name, what, unit, value.middle, value.low, value.high);
	if (goal > 0)
		fprintf(json, ",\"goal\":%.2f", goal);
	fprintf(json, "}\n");
}

void report_skip(const char *name, const char *reason)
{
	const char *must = getenv("KVREG_MUST_WORK");

	case_line(name);
	printf("  skipped: %s\n", reason);
	if (json)
		fprintf(json, "{\"case\":\"%s\",\"skipped\":\"%s\"}\n", name, reason);
	require(!must || *must != '1');
}

void report_note(const char *words)
{
	printf("  %s\n", words);
}

int report_close(void)
{
	bool failed = fflush(stdout) != 0 || ferror(stdout);

	printf("\n");
	if (json)
		failed |= fclose(json) != 0;
	json = NULL;
	return failed;
}
