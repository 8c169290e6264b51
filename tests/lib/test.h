/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KVREG_TEST_H
#define KVREG_TEST_H
/* What every test includes: cmocka with what it wants before it, and how a test program ends. */
#undef NDEBUG /* the parts under test assert their own invariants */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>

/** open_fds() - how many descriptors this process has open. */
static inline int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = -3; /* ".", ".." and the directory itself */

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Runs a group; what main() returns. A descriptor that was left open is a failure. */
#define RUN_GROUP(name, tests)                                                                     \
	({                                                                                         \
		int fds_ = open_fds();                                                             \
		int failed_ = cmocka_run_group_tests_name(name, tests, NULL, NULL);                \
                                                                                                   \
		failed_ || open_fds() != fds_;                                                     \
	})

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
