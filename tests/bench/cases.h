/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_BENCH_CASES_H
#define KVREG_BENCH_CASES_H
/* The cases of bench-broker. Each wants a daemon on the mock device, and leaves it idle. */

struct daemon_under_test;
typedef void case_fn(struct daemon_under_test *daemon);

/* registration.c: against round trips, and against round trips with the kernel's part. */
case_fn case_halves, case_register, case_large;
/* sessions.c */
case_fn case_start, case_memory, case_idle;
/* neighbour.c */
case_fn case_neighbour;

/** neighbour_prepare() - adds what case_neighbour wants to the configuration, before the start. */
void neighbour_prepare(const struct daemon_under_test *daemon);

#endif
