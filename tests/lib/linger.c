/* SPDX-License-Identifier: Apache-2.0 */
#include "linger.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define LINGER_S 3600

void linger_open(struct linger_pair *pair)
{
	static const char bytes[65536];
	const struct linger linger = { 1, LINGER_S };
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	require(bind(listener, (struct sockaddr *)&address, length) == 0);
	require(listen(listener, 1) == 0);
	require(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
	pair->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	require(connect(pair->fd, (struct sockaddr *)&address, length) == 0);
	pair->peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	require(pair->peer >= 0);
	close(listener);
	require(setsockopt(pair->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) == 0);
	while (send(pair->fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
}

void linger_send(struct linger_pair *pair, struct raw *raw, linger_send_fn *send)
{
	int go[2], status;
	char byte;
	pid_t pid;

	require(pipe2(go, O_CLOEXEC) == 0);
	fflush(NULL);
	pid = fork();
	require(pid >= 0);
	if (pid == 0) {
		close(go[1]);
		(void)!read(go[0], &byte, 1);
		send(raw, pair->fd);
		_exit(0);
	}
	close(pair->fd);
	pair->fd = -1;
	close(go[0]);
	close(go[1]);
	require(waitpid(pid, &status, 0) == pid && status == 0);
}

void linger_release(struct linger_pair *pair)
{
	static char bytes[65536];

	while (recv(pair->peer, bytes, sizeof(bytes), 0) > 0)
		;
	close(pair->peer);
}
