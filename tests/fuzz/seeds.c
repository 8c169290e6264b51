/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seeds DIRECTORY: writes the inputs that the fuzzers start from, a well-behaved run and a few
 * misbehaved ones each, into DIRECTORY/session, control, client and config, which must be there.
 */
#include <string.h>

#include "proto/codec.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/script.h"
#include "tests/fuzz/seeds.h"

static struct script script;
static uint8_t room[1u << 16];
static size_t used;
static const char *directory;

/* script.c's mutators want it; nothing is mutated here. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
	(void)data;
	(void)max_size;
	return size;
}

static void write_file(const char *fuzzer, const char *name, const void *bytes, size_t size)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s/seed-%s", directory, fuzzer, name);
	file = fopen(path, "we");
	must(file && fwrite(bytes, 1, size, file) == size);
	must(fclose(file) == 0);
}

size_t seed_count(void)
{
	return script.count;
}

void seed_save(const char *fuzzer, const char *name)
{
	static uint8_t bytes[1u << 16];
	size_t size = script_write(&script, bytes, sizeof(bytes));

	must(size > 0);
	write_file(fuzzer, name, bytes, size);
	script.count = 0;
	used = 0;
}

void seed_raw(unsigned int op, unsigned int arg, const void *bytes, size_t length)
{
	must(script.count < STEPS_MAX && length <= sizeof(room) - used);
	if (length > 0)
		memcpy(room + used, bytes, length);
	script.steps[script.count++] =
		(struct step){ (uint8_t)op, (uint8_t)arg, length, room + used };
	used += length;
}

void seed_step(unsigned int op, unsigned int arg)
{
	seed_raw(op, arg, NULL, 0);
}

void seed_message(unsigned int op, unsigned int arg, const ProtobufCMessage *m)
{
	uint8_t bytes[12288];

	seed_raw(op, arg, bytes, codec_pack(m, bytes, sizeof(bytes)));
}

/* ---- config ---- */

static void seed_config(void)
{
	static const char *const texts[] = {
		"[daemon]\nsession_user = kvreg-session\ncgroup = /kvregd-sessions\n",
		"[quota]\ntotal = 50%\nper_uid = 1.5T\nsessions = 1024\nsessions_per_uid = 64\n",
		"[quota]\naccess = local_write,remote_write, remote_read,mw_bind\n",
		"[uid 1000]\nbytes = 64G\nsessions = 200\n[uid 0]\nbytes=25%\n; note\n[uid 1000]\n",
		"[class b]\nsocket = /b\nmode = 0660\nbytes = 1T\n",
		"[class a]\nmode = 8\nsocket=b\n",
		"[class default]\nsocket = /b\n",
		"[daemon]\ncgroup = none\n# note\n[uid x]\nbytes = -1\n",
		"\xef\xbb\xbf[quota]\ntotal : 0x1p62\n  more\nper_uid = nan\n",
		"[test a]\ndelay = register:20000, map:5\n[class a]\nsocket = /a\n",
		"[test default]\nmax_mr = 64\nmax_mr_size = 1G\nfail = import:EBADF:2\n",
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		char name[8];

		snprintf(name, sizeof(name), "%zu", i);
		write_file("config", name, texts[i], strlen(texts[i]));
	}
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	directory = argv[1];
	seed_session();
	seed_control();
	seed_client();
	seed_config();
	return 0;
}
