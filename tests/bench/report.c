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
	if (load > (double)cpus / 2)
		printf("The machine has other work: the figures are worse than they would be "
		       "alone.\n");
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

static void way_row(const struct contest *contest, const struct way *way, const struct figures *f)
{
	double median = spread_of(f->median, contest->rounds).middle;
	double p99 = spread_of(f->p99, contest->rounds).middle;

	printf("  %-*s %10.1f %10.1f\n", NAME_WIDTH - 2, way->name, median, p99);
	if (json)
		fprintf(json,
			"{\"case\":\"%s\",\"way\":\"%s\",\"median_us\":%.3f,\"p99_us\":%.3f,"
			"\"rounds\":%zu,\"times\":%zu}\n",
			contest->name, way->name, median, p99, contest->rounds, contest->times);
}

static void ratio_row(const struct comparison *with, const char *against, struct spread ratio,
		      struct spread ratio_p99)
{
	char name[128], texts[2][64];

	snprintf(name, sizeof(name), "    against \"%s\"", against);
	spread_text(texts[0], sizeof(texts[0]), ratio);
	spread_text(texts[1], sizeof(texts[1]), ratio_p99);
	printf("%-*s  %-21s  %-21s", NAME_WIDTH + 22, name, texts[0], texts[1]);
	if (with->goal > 0)
		printf("  goal%s %.1f: %s", with->goal_is_p99 ? " of p99" : "", with->goal,
		       verdict(with->goal_is_p99 ? ratio_p99.middle : ratio.middle, with->goal));
	printf("\n");
}

static void ratio_json(const struct contest *contest, const struct way *way,
		       const struct comparison *with, struct spread ratio, struct spread ratio_p99)
{
	fprintf(json,
		"{\"case\":\"%s\",\"way\":\"%s\",\"against\":\"%s\",\"ratio\":%.3f,"
		"\"ratio_min\":%.3f,\"ratio_max\":%.3f,\"p99_ratio\":%.3f,\"p99_ratio_min\":%.3f,"
		"\"p99_ratio_max\":%.3f",
		contest->name, way->name, contest->ways[with->way].name, ratio.middle, ratio.low,
		ratio.high, ratio_p99.middle, ratio_p99.low, ratio_p99.high);
	if (with->goal > 0)
		fprintf(json, ",\"%s\":%.2f", with->goal_is_p99 ? "p99_goal" : "goal", with->goal);
	fprintf(json, "}\n");
}

static void compare(const struct contest *contest, const struct figures *figures, size_t i,
		    const struct comparison *with)
{
	const struct figures *mine = &figures[i], *bare = &figures[with->way];
	struct spread ratio = spread_of_ratios(mine->median, bare->median, contest->rounds);
	struct spread ratio_p99 = spread_of_ratios(mine->p99, bare->p99, contest->rounds);

	ratio_row(with, contest->ways[with->way].name, ratio, ratio_p99);
	if (json)
		ratio_json(contest, &contest->ways[i], with, ratio, ratio_p99);
}

const struct figures *report_contest(const struct contest *contest)
{
	static struct figures figures[WAYS_MAX];

	case_line(contest->name);
	contest_run(contest, figures);
	for (size_t i = 0; i < contest->n_ways; i++) {
		way_row(contest, &contest->ways[i], &figures[i]);
		for (size_t n = 0; n < contest->ways[i].n_against; n++)
			compare(contest, figures, i, &contest->ways[i].against[n]);
	}
	return figures;
}

void report_value(const char *name, const char *what, const char *unit, struct spread value,
		  double goal)
{
	int digits = value.high < 100 ? 2 : 0;

	case_line(name);
	printf("  %-*s %10.*f %s", NAME_WIDTH - 2, what, digits, value.middle, unit);
	if (value.low < value.high)
		printf(" (%.*f..%.*f)", digits, value.low, digits, value.high);
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
	bool failed;

	printf("\n");
	failed = fflush(stdout) != 0 || ferror(stdout);
	if (json)
		failed |= fclose(json) != 0;
	json = NULL;
	return failed;
}
