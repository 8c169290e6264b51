/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/procfs.h"

static void own_status(void **state)
{
	struct proc_status self, mine;

	(void)state;
	assert_int_equal(proc_status(0, &self), 0);
	assert_int_equal(proc_status(getpid(), &mine), 0);
	assert_true(self.vm_pin == mine.vm_pin && self.vm_lck == mine.vm_lck);
	assert_true(self.cap_eff == mine.cap_eff && self.cap_bnd == mine.cap_bnd);
	assert_int_equal(self.uid, getuid());
	assert_true((self.cap_eff & ~self.cap_prm) == 0);
	assert_true((self.cap_amb & ~self.cap_inh) == 0);
}

static void locked_memory_shows(void **state)
{
	struct proc_status before, after;
	size_t size = 16 * 4096;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(proc_status(0, &before), 0);
	/* By its number: under a sanitizer mlock() does nothing. */
	assert_int_equal(syscall(SYS_mlock, p, size), 0);
	assert_int_equal(proc_status(0, &after), 0);
	assert_int_equal(after.vm_lck - before.vm_lck, size);
	assert_int_equal(after.vm_pin, before.vm_pin);
	munmap(p, size);
}

/* Field 22, whatever the comm holds. */
static void start_time_is_past_the_comm(void **state)
{
	uint64_t plain, odd;
	char name[16];

	(void)state;
	prctl(PR_GET_NAME, name, 0, 0, 0);
	assert_int_equal(proc_start_time(0, &plain), 0);
	prctl(PR_SET_NAME, "a) R 1 (b 2 3", 0, 0, 0);
	assert_int_equal(proc_start_time(getpid(), &odd), 0);
	prctl(PR_SET_NAME, name, 0, 0, 0);
	assert_true(plain > 0 && plain == odd);
}

static void who_is_gone_is_not_found(void **state)
{
	struct proc_status status;
	uint64_t ticks;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	assert_int_equal(proc_status(pid, &status), -ENOENT);
	assert_int_equal(proc_start_time(pid, &ticks), -ENOENT);
}

static void first_line_of_a_file(void **state)
{
	char text[64], cut[3], own[64];

	(void)state;
	prctl(PR_GET_NAME, own, 0, 0, 0);
	assert_int_equal(proc_read("/proc/self/comm", text, sizeof(text)), 0);
	assert_string_equal(text, own);
	assert_int_equal(proc_read("/proc/self/comm", cut, sizeof(cut)), 0);
	assert_int_equal(strlen(cut), 2);
	assert_int_equal(proc_read("/proc/self/limits", text, sizeof(text)), 0);
	assert_null(strchr(text, '\n'));
	assert_int_equal(proc_read("/proc/no such file", text, sizeof(text)), -ENOENT);
}

static void memory_of_the_host(void **state)
{
	uint64_t total, available, untouched = 77;

	(void)state;
	assert_int_equal(proc_meminfo("MemTotal", &total), 0);
	assert_int_equal(proc_meminfo("MemAvailable", &available), 0);
	assert_true(total > available && available > 0);
	assert_true(total >= (uint64_t)sysconf(_SC_PHYS_PAGES) * 4096);
	assert_int_equal(proc_meminfo("Total", &untouched), -ENOENT);
	assert_int_equal(untouched, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_status),
		cmocka_unit_test(locked_memory_shows),
		cmocka_unit_test(start_time_is_past_the_comm),
		cmocka_unit_test(who_is_gone_is_not_found),
		cmocka_unit_test(first_line_of_a_file),
		cmocka_unit_test(memory_of_the_host),
	};

	return RUN_GROUP("proto-procfs", tests);
}
