/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of somebody else, in a container of an older distribution: of the bundle it has the
 * header and the library. It registers memory on the daemon's mock device and prints what it got.
 *
 * With an argument it keeps that until its standard input ends.
 *
 * It is linked as the bundle's programs are, and has a constructor, which glibc of before 2.34 runs
 * only because of client/bundle/start.c.
 */
#include <err.h>
#include <fcntl.h>
#include <kvreg-client.h>
#include <stdio.h>

#define SIZE   ((size_t)4 << 20)
#define ACCESS 1u /* IBV_ACCESS_LOCAL_WRITE */

static int constructed;

__attribute__((constructor)) static void construct(int argc, char **argv)
{
	constructed = argc > 0 && argv[0];
}

static void ok(int result)
{
	char text[1024];

	if (result < 0 && kvreg_error_text(kvreg_last_error(), text, sizeof(text)))
		errx(1, "%s", text);
}

int main(int argc, char **argv)
{
	struct kvreg_identity identity;
	struct kvreg_domain *domain;
	struct kvreg_buffer *buffer;
	struct kvreg_region *region;
	struct kvreg *k;
	void *address;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)argv;
	if (!constructed)
		errx(1, "the constructor was not run");
	ok(kvreg_open(NULL, &k));
	ok(kvreg_attach_fd(k, fd, /* pd_handle */ 0, &domain));
	ok(kvreg_buffer_alloc(k, SIZE, 0, &address, &buffer));
	ok(kvreg_register(domain, buffer, 0, SIZE, 0, ACCESS, NULL, &region));
	ok(kvreg_whoami(k, &identity));
	printf("uid %u registered %llu bytes on %s\n", identity.uid,
	       (unsigned long long)identity.charged, kvreg_domain_device(domain));
	if (kvreg_register(domain, buffer, 0, 2 * SIZE, 0, ACCESS, NULL, &region) == 0)
		errx(1, "twice the buffer was registered");
	printf("refused: %s\n", kvreg_error_name(kvreg_last_error()));
	fflush(stdout);
	while (argc > 1 && getchar() != EOF)
		;
	ok(kvreg_deregister(region));
	ok(kvreg_whoami(k, &identity));
	kvreg_close(k);
	return printf("%u regions left\n", identity.regions) < 0;
}
