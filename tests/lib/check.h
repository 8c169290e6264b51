/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_TEST_CHECK_H
#define KVREG_TEST_CHECK_H
/*
 * Checks that hold in a test program and in the processes that it forks, and waiting.
 *
 * cmocka's own asserts jump back into its runner: in a forked child they would run the rest of the
 * tests there. require() ends a child with a line on standard error and a status of its own.
 */
#include <stdbool.h>

#include "test.h"

/* A child whose require() failed exits with this. */
#define CHILD_FAILED 99

#define require(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))

/** check_failed() - fails the test or ends the child. Does not return. */
void check_failed(const char *file, int line, const char *words) __attribute__((noreturn));

/**
 * wait_until() - calls @holds until it is true, as long as anybody could want to wait (30 s).
 * Return: whether it came true. No test may depend on how long that took.
 */
bool wait_until(bool (*holds)(void *arg), void *arg);

/** wait_readable() - waits for @fd to be readable or hung up. Return: whether it is. */
bool wait_readable(int fd);

/**
 * skip_test() - skips the running test with @reason; under KVREG_MUST_WORK=1 that is a failure.
 * Does not return.
 */
void skip_test(const char *reason);

#endif
