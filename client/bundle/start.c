/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a program on glibc of before 2.34, when it was built with a newer one.
 *
 * The start code of a new glibc (crt1.o) hands no init function to __libc_start_main, which runs
 * the program's constructors by itself. The old __libc_start_main, which is what the bundle's
 * programs ask for (old-libc), runs what it is handed and nothing else. So hand it one: a new glibc
 * calls it too, in place of its own, when it sees a program that asks for the old version. The
 * linker puts this between the two (--wrap).
 */
#include <stddef.h>

typedef int main_function(int, char **, char **);
typedef void init_function(int, char **, char **);

int __real___libc_start_main(main_function *program, int argc, char **argv, init_function *init,
			     void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int __wrap___libc_start_main(main_function *program, int argc, char **argv, init_function *init,
			     void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

/* By the linker. The loader runs the destructors, in every glibc. */
extern init_function *__init_array_start[], *__init_array_end[];

static void run_constructors(int argc, char **argv, char **env)
{
	const size_t n = (size_t)(__init_array_end - __init_array_start);

	for (size_t i = 0; i < n; i++)
		__init_array_start[i](argc, argv, env);
}

int __wrap___libc_start_main(main_function *program, int argc, char **argv, init_function *init,
			     void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	return __real___libc_start_main(program, argc, argv, init ? init : run_constructors, fini,
					rtld_fini, stack_end);
}
