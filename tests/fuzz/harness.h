/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_FUZZ_HARNESS_H
#define KVREG_FUZZ_HARNESS_H
/*
 * What every fuzzer includes. Rules for a fuzzer: an input leaves nothing behind (memory, fds,
 * mappings, state), and every invariant that can be looked at from outside is asserted with must(),
 * which stays on whatever NDEBUG says.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define must(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: must(%s)\n", __FILE__, __LINE__, #condition);      \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/** lowest_fd() - the lowest free fd: the same before and after, unless one was left open. */
int lowest_fd(void);

/** count_mappings() - lines of /proc/self/maps that contain @name. */
size_t count_mappings(const char *name);

/** bystander() - a process that does nothing, a child of this one; ends with it. */
int bystander(void);

/* libFuzzer's */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
