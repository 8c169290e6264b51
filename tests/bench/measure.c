/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The smallest of @n sorted values that @percent of them do not exceed. */
static double percentile(const double *sorted, size_t n, size_t percent)
{
	return sorted[(n * percent + 99) / 100 - 1];
}

struct spread spread_of(const double *values, size_t n)
{
	double sorted[ROUNDS_MAX];

	require(n > 0 && n <= ROUNDS_MAX);
	memcpy(sorted, values, n * sizeof(sorted[0]));
	qsort(sorted, n, sizeof(sorted[0]), compare);
	return (struct spread){ percentile(sorted, n, 50), sorted[0], sorted[n - 1] };
}

struct spread spread_of_ratios(const double *a, const double *b, size_t n)
{
	double ratios[ROUNDS_MAX];

	require(n <= ROUNDS_MAX);
	for (size_t i = 0; i < n; i++)
		ratios[i] = a[i] / b[i];
	return spread_of(ratios, n);
}

/* Return: how long it took, in microseconds. */
static double run_once(const struct way *way)
{
	uint64_t start, end;

	if (way->prepare)
		way->prepare(way->arg);
	start = now_ns();
	way->run(way->arg);
	end = now_ns();
	if (way->undo)
		way->undo(way->arg);
	return (double)(end - start) / 1e3;
}

static void run_way(const struct way *way, size_t times, double *ret_median, double *ret_p99)
{
	static double us[TIMES_MAX];

	if (way->before)
		way->before(way->arg);
	/* What the ways before have pushed out of the caches comes back here. */
	for (size_t i = 0; i < times / 20 + 1; i++)
		(void)run_once(way);
	for (size_t i = 0; i < times; i++)
		us[i] = run_once(way);
	if (way->after)
		way->after(way->arg);
	qsort(us, times, sizeof(us[0]), compare);
	*ret_median = percentile(us, times, 50);
	*ret_p99 = percentile(us, times, 99);
}

void contest_run(const struct contest *contest, struct figures *ret_figures)
{
	require(contest->rounds <= ROUNDS_MAX && contest->n_ways <= WAYS_MAX);
	require(contest->times > 0 && contest->times <= TIMES_MAX);
	for (size_t round = 0; round < contest->rounds; round++) {
		for (size_t n = 0; n < contest->n_ways; n++) {
			size_t i = round % 2 == 0 ? n : contest->n_ways - 1 - n;

			run_way(&contest->ways[i], contest->times, &ret_figures[i].median[round],
				&ret_figures[i].p99[round]);
		}
	}
}
