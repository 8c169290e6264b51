/* SPDX-License-Identifier: Apache-2.0 */
#include "holder.h"

#include <fcntl.h>
#include <unistd.h>

#include "check.h"

struct holder hold(const char *path, uint64_t size)
{
	struct holder h = { .raw = raw_greet(path) };

	h.device = device_open();
	h.memory = memory_fd(size, F_SEAL_SHRINK);
	h.domain = raw_attach(h.raw, h.device.fd, h.device.pd)->attach_domain->domain;
	h.buffer = raw_import(h.raw, h.memory, size, 0)->import_buffer->buffer;
	return h;
}

void let_go(struct holder *h)
{
	raw_close(h->raw);
	device_close(&h->device);
	close(h->memory);
}

const Kvreg__Reply *try_register(struct holder *h, uint64_t length)
{
	Kvreg__RegisterItem item = raw_item(h->domain, h->buffer, length);

	item.iova = ++h->serial << 30;
	return raw_register(h->raw, &item, 1);
}

uint32_t must_register(struct holder *h, uint64_t length)
{
	const Kvreg__Reply *reply = try_register(h, length);

	require(reply->register_ && reply->register_->n_regions == 1);
	return reply->register_->regions[0]->region;
}
