/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_BENCH_MEASURE_H
#define KVREG_BENCH_MEASURE_H
/*
 * Ways to do one thing, timed against each other.
 *
 * A contest runs in rounds. In each round every way is run the same number of times in a row, in
 * an order that is reversed from round to round, so that a machine that gets slower or faster does
 * it to all of them. Of each round and way its median and 99th percentile are kept; a ratio is made
 * within a round, and what is reported of all of these is the median over the rounds and the
 * extremes. Absolute times are for people: only ratios are claims.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROUNDS_MAX      64u
#define WAYS_MAX        6u
#define TIMES_MAX       20000u
#define COMPARISONS_MAX 2u

struct comparison {
	size_t way; /* index */
	/* What the ratio should not exceed; 0: no goal. */
	double goal;
	bool goal_is_p99; /* the goal is for the ratio of the 99th percentiles */
};

struct way {
	const char *name;
	/* Once. */
	void (*run)(void *arg);
	/* Around each run, not timed; may be NULL. */
	void (*prepare)(void *arg);
	void (*undo)(void *arg);
	/* Around the runs of one round, not timed; may be NULL. */
	void (*before)(void *arg);
	void (*after)(void *arg);
	void *arg;
	/* What it is compared with; nothing: it is a bare alternative. */
	struct comparison against[COMPARISONS_MAX];
	size_t n_against;
};

struct contest {
	const char *name;
	const struct way *ways;
	size_t n_ways;
	size_t rounds, times; /* times: runs of one way in one round */
};

/* In microseconds, one of each round. */
struct figures {
	double median[ROUNDS_MAX], p99[ROUNDS_MAX];
};

/** contest_run() - runs all rounds. @ret_figures: one for each way. */
void contest_run(const struct contest *contest, struct figures *ret_figures);

struct spread {
	double middle, low, high;
};

/** spread_of() - median and extremes of @n values, at most ROUNDS_MAX. */
struct spread spread_of(const double *values, size_t n);

/** spread_of_ratios() - the same of @a over @b, value by value. */
struct spread spread_of_ratios(const double *a, const double *b, size_t n);

/** now_ns() - of the monotonic clock. */
uint64_t now_ns(void);

#endif
