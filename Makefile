# SPDX-License-Identifier: Apache-2.0
# kvreg: make help lists the goals. One list of sources per target; all products go to build/.

BUILD ?= build
VERSION := 0.1.0
SOVERSION := 0
LIBDIR ?= /usr/local/lib

CC ?= gcc
CLANG ?= clang
CFLAGS ?= -O2 -g
PKGS := libprotobuf-c
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wswitch-enum \
	-Wformat=2 -Wundef -Wpointer-arith
# make check builds with -Werror; a packager's newer compiler must not break the build
ifdef WERROR
WARN += -Werror
endif
HARDEN := -fPIC -fvisibility=hidden -fstack-protector-strong -D_FORTIFY_SOURCE=3
ifdef SANITIZE
HARDEN := -DKVREG_NO_FILTER -fPIC -fvisibility=hidden -fsanitize=$(SANITIZE) -fno-omit-frame-pointer
LDFLAGS += -fsanitize=$(SANITIZE)
endif
KCFLAGS = -std=gnu11 -D_GNU_SOURCE -DKVREG_VERSION='"$(VERSION)"' $(WARN) $(HARDEN) \
	-I. -I$(BUILD)/include -I$(BUILD)/gen
KLDFLAGS = $(LDFLAGS) -Wl,-z,relro,-z,now -Wl,--as-needed
LIBPROTOBUF := -lprotobuf-c
CTL_LIBS := -lsmartcols -libverbs

# ---------------------------------------------------------------- sources

PROTO := snapshot kvreg admin control
PROTO_SRC := proto/books.c proto/codec.c proto/failure.c proto/fdset.c proto/procfs.c proto/uverbs.c proto/wire.c
DAEMON_SRC := $(sort $(wildcard daemon/*.c))
SESSION_SRC := $(sort $(wildcard daemon/session/*.c))
CLIENT_SRC := $(sort $(wildcard client/*.c))
CTL_SRC := $(sort $(wildcard client/ctl/*.c))
PRELOAD_SRC := $(sort $(wildcard client/preload/*.c))
RUN_SRC := $(sort $(wildcard client/run/*.c))

GEN_SRC := $(PROTO:%=$(BUILD)/gen/%.pb-c.c)
GEN_HDR := $(PROTO:%=$(BUILD)/gen/%.pb-c.h) $(BUILD)/include/kvreg-errors.h
PROTO_OBJ := $(PROTO_SRC:%.c=$(BUILD)/obj/%.o) $(PROTO:%=$(BUILD)/obj/gen/%.pb-c.o)
obj = $(1:%.c=$(BUILD)/obj/%.o)

LIB := $(BUILD)/libkvreg-client.so.$(SOVERSION)
PRELOAD := $(BUILD)/libkvreg-preload.so
PROGRAMS := $(BUILD)/kvregd $(BUILD)/kvregd-session $(BUILD)/kvregctl $(BUILD)/kvreg-run

all: $(PROGRAMS) $(LIB) $(PRELOAD) $(BUILD)/libkvreg-client.so $(BUILD)/kvreg-client.pc

# ---------------------------------------------------------------- generated

$(BUILD)/include/kvreg-errors.h: proto/error.def proto/gen-errors.awk
	@mkdir -p $(@D)
	awk -f proto/gen-errors.awk proto/error.def >$@.new && mv $@.new $@

$(BUILD)/gen/%.pb-c.c $(BUILD)/gen/%.pb-c.h: proto/%.proto
	@mkdir -p $(BUILD)/gen
	protoc-c -Iproto --c_out=$(BUILD)/gen $<

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c $(GEN_HDR)
	@mkdir -p $(@D)
	$(CC) $(KCFLAGS) $(CFLAGS) -c -o $@ $<

$(BUILD)/obj/%.o: %.c | $(GEN_HDR)
	@mkdir -p $(@D)
	$(CC) $(KCFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# ---------------------------------------------------------------- programs

$(BUILD)/libkvreg-proto.a: $(PROTO_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/kvregd: $(call obj,$(DAEMON_SRC)) $(BUILD)/libkvreg-proto.a
	$(CC) $(KLDFLAGS) -pie -o $@ $^ -lev -linih -lcap -lsystemd -lprotobuf-c

$(BUILD)/kvregd-session: $(call obj,$(SESSION_SRC)) $(BUILD)/libkvreg-proto.a
	$(CC) $(KLDFLAGS) -pie -o $@ $^ -lprotobuf-c -lseccomp
	@# exec of a file that its user can read resets dumpable: a same-user attacker could ptrace it
	chmod 0711 $@

$(LIB): $(call obj,$(CLIENT_SRC)) $(BUILD)/libkvreg-proto.a client/kvreg-client.map
	$(CC) $(KLDFLAGS) -shared -Wl,-soname,$(@F) -Wl,--version-script=client/kvreg-client.map \
		-Wl,-z,defs -o $@ $(filter %.o %.a,$^) $(LIBPROTOBUF) -lpthread

$(BUILD)/libkvreg-client.so: $(LIB)
	ln -sf $(<F) $@

$(BUILD)/kvreg-client.pc: client/kvreg-client.pc.in Makefile
	sed -e 's|@VERSION@|$(VERSION)|' -e 's|@INCLUDEDIR@|$(abspath client)|' \
		-e 's|@LIBDIR@|$(abspath $(BUILD))|' -e 's|@ERRORSDIR@|$(abspath $(BUILD))/include|' $< >$@

$(BUILD)/kvregctl: $(call obj,$(CTL_SRC)) $(BUILD)/libkvreg-proto.a $(LIB) | $(BUILD)/libkvreg-client.so
	$(CC) $(KLDFLAGS) -pie -o $@ $(filter %.o %.a,$^) -L$(BUILD) -lkvreg-client \
		-Wl,-rpath,'$$ORIGIN' $(CTL_LIBS) $(LIBPROTOBUF)

# For other distributions' containers, in a build of its own (BUNDLE: where its tar goes).
BUNDLE_MAKE = $(MAKE) --no-print-directory -s BUILD=$(BUILD)/bundle BUNDLE=$(BUILD)
ifdef BUNDLE
include client/bundle/bundle.mk
endif

# The library is inside, with every name of it hidden: one file to preload, and a program that uses
# libkvreg-client has its own.
$(PRELOAD): $(call obj,$(PRELOAD_SRC) $(CLIENT_SRC)) $(BUILD)/libkvreg-proto.a client/preload/preload.map
	$(CC) $(KLDFLAGS) -shared -Wl,-soname,$(@F) -Wl,--version-script=client/preload/preload.map \
		-Wl,-z,defs -o $@ $(filter %.o %.a,$^) -l:libprotobuf-c.a -lpthread

$(BUILD)/obj/client/run/%.o: KCFLAGS += -DKVREG_LIBDIR='"$(LIBDIR)"'

$(BUILD)/kvreg-run: $(call obj,$(RUN_SRC)) $(BUILD)/obj/client/ctl/format.o $(BUILD)/obj/client/ctl/optable.o $(BUILD)/libkvreg-proto.a $(LIB) | $(BUILD)/libkvreg-client.so
	$(CC) $(KLDFLAGS) -pie -o $@ $(filter %.o %.a,$^) -L$(BUILD) -lkvreg-client -Wl,-rpath,'$$ORIGIN' $(LIBPROTOBUF)

# ---------------------------------------------------------------- tests
#
# A unit test is named after the part it tests and is linked with that part's objects: test-proto-*,
# test-daemon-*, test-session-*, test-client-*, test-ctl-*, test-preload-*, test-run-*. Integration
# tests start the programs.

TEST_CFLAGS = $(KCFLAGS) -UNDEBUG -DKVREG_BUILD='"$(abspath $(BUILD))"' -DKVREG_SRC='"$(CURDIR)"' -Iclient -Itests/lib
TEST_LIBS := -lcmocka -lprotobuf-c -lpthread
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(sort $(wildcard tests/unit/test-*.c)))
INTEGRATION_TESTS := $(patsubst tests/integration/%.c,$(BUILD)/tests/integration/%,\
	$(sort $(wildcard tests/integration/test-*.c)))
VM_PROGRAMS := $(patsubst tests/vm/%.c,$(BUILD)/tests/vm/%,$(sort $(wildcard tests/vm/*.c)))
EXAMPLES := $(patsubst tests/examples/%.c,$(BUILD)/tests/examples/%,$(sort $(wildcard tests/examples/*.c)))
TEST_LIB_OBJ := $(patsubst tests/lib/%.c,$(BUILD)/obj/tests/lib/%.o,$(sort $(wildcard tests/lib/*.c)))

DAEMON_PART := $(filter-out %/kvregd.o,$(call obj,$(DAEMON_SRC)))
SESSION_PART := $(filter-out %/kvregd-session.o,$(call obj,$(SESSION_SRC)))
RUN_PART := $(filter-out %/kvreg-run.o,$(call obj,$(RUN_SRC)))
CTL_PART := $(filter-out %/kvregctl.o,$(call obj,$(CTL_SRC)))

link_unit = $(CC) $(TEST_CFLAGS) $(CFLAGS) $(KLDFLAGS) -MMD -MP -MF $(BUILD)/obj/$(@F).d -o $@ $< \
	$(filter %.o %.a,$^) $(TEST_LIBS)

$(BUILD)/tests/unit/test-proto-%: tests/unit/test-proto-%.c $(BUILD)/libkvreg-proto.a
	@mkdir -p $(@D)
	$(link_unit)

$(BUILD)/tests/unit/test-daemon-%: tests/unit/test-daemon-%.c $(DAEMON_PART) $(BUILD)/libkvreg-proto.a
	@mkdir -p $(@D)
	$(link_unit) -lev -linih -lcap -lsystemd

$(BUILD)/tests/unit/test-session-%: tests/unit/test-session-%.c $(SESSION_PART) $(BUILD)/libkvreg-proto.a
	@mkdir -p $(@D)
	$(link_unit) -lseccomp

$(BUILD)/tests/unit/test-client-%: tests/unit/test-client-%.c $(call obj,$(CLIENT_SRC)) $(BUILD)/libkvreg-proto.a
	@mkdir -p $(@D)
	$(link_unit)

$(BUILD)/tests/unit/test-ctl-%: tests/unit/test-ctl-%.c $(CTL_PART) $(BUILD)/libkvreg-proto.a $(LIB) \
		| $(BUILD)/libkvreg-client.so
	@mkdir -p $(@D)
	$(link_unit) -L$(BUILD) -lkvreg-client -Wl,-rpath,'$$ORIGIN/../..' -lsmartcols -libverbs

# ioctl(2) of such a program is ours. The kernel behind it, in one of them, is the test's.
$(BUILD)/tests/unit/test-preload-ioctl: LDFLAGS += -Wl,--wrap=kernel_verbs -Wl,--wrap=settings
$(BUILD)/tests/unit/test-preload-%: tests/unit/test-preload-%.c $(call obj,$(PRELOAD_SRC) $(CLIENT_SRC)) $(BUILD)/libkvreg-proto.a
	@mkdir -p $(@D)
	$(link_unit)

$(BUILD)/tests/unit/test-run-%: tests/unit/test-run-%.c $(RUN_PART) $(BUILD)/obj/client/ctl/format.o $(BUILD)/obj/client/ctl/optable.o $(BUILD)/libkvreg-proto.a
	@mkdir -p $(@D)
	$(link_unit)

$(BUILD)/obj/tests/lib/%.o: tests/lib/%.c | $(GEN_HDR)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# Programs that use the library as anybody would, and may speak the protocol beside it.
$(BUILD)/tests/integration/%: tests/integration/%.c $(TEST_LIB_OBJ) $(BUILD)/libkvreg-proto.a $(LIB) \
		| $(BUILD)/libkvreg-client.so
	@mkdir -p $(@D)
	$(link_unit) -L$(BUILD) -lkvreg-client -Wl,-rpath,'$$ORIGIN/../..' -libverbs

$(BUILD)/tests/vm/%: tests/vm/%.c $(CTL_PART) $(TEST_LIB_OBJ) $(BUILD)/libkvreg-proto.a $(LIB) \
		| $(BUILD)/libkvreg-client.so
	@mkdir -p $(@D)
	$(link_unit) -L$(BUILD) -lkvreg-client -Wl,-rpath,'$$ORIGIN/../..' -libverbs -lsmartcols

# Its programs are tests/bench/bench-*; what they share is in the other files.
BENCH_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out tests/bench/bench-%,$(sort $(wildcard tests/bench/*.c))))
BENCH_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/bench/bench-*.c)))

$(BUILD)/obj/tests/bench/%.o: tests/bench/%.c | $(GEN_HDR)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/bench/bench-%: tests/bench/bench-%.c $(BENCH_OBJ) $(TEST_LIB_OBJ) $(BUILD)/libkvreg-proto.a $(LIB) \
		| $(BUILD)/libkvreg-client.so
	@mkdir -p $(@D)
	$(link_unit) -L$(BUILD) -lkvreg-client -Wl,-rpath,'$$ORIGIN/../..' -libverbs

# Only the public header and the library: what a stranger has.
$(BUILD)/tests/examples/%: tests/examples/%.c $(LIB) client/kvreg-client.h | $(BUILD)/libkvreg-client.so
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -Wall -Wextra -Werror $(CFLAGS) $(LDFLAGS) -Iclient -I$(BUILD)/include -o $@ $< \
		-L$(BUILD) -lkvreg-client -Wl,-rpath,'$$ORIGIN/../..' -libverbs

# Programs that have nothing of kvreg, nor of libibverbs unless they open it themselves.
UNMODIFIED := $(patsubst tests/unmodified/%.c,$(BUILD)/tests/unmodified/%,$(sort $(wildcard tests/unmodified/*.c)))

$(BUILD)/tests/unmodified/%: tests/unmodified/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror $(CFLAGS) $(LDFLAGS) -o $@ $< -ldl -lpthread

# Fuzzers: libFuzzer on the parts of the programs that read what somebody else wrote. In a build of
# their own (FUZZ_MAKE), with clang; tests/fuzz/run runs them. What a fuzzer replaces, it names.
FUZZERS := session control client config
FUZZ_MAKE = $(MAKE) --no-print-directory -s BUILD=$(BUILD)/fuzz CC=$(CLANG) \
	CFLAGS='-O1 -g -fno-sanitize-recover=all' SANITIZE=fuzzer-no-link,address,undefined,float-cast-overflow
fuzz_obj = $(patsubst %,$(BUILD)/obj/tests/fuzz/%.o,$(1))
fuzz_wrap = $(patsubst %,-Wl$(comma)--wrap=%,$(1))
comma := ,
link_fuzz = $(CC) $(CFLAGS) $(LDFLAGS) -fsanitize=fuzzer -o $@ $(filter %.o %.a,$^)

$(BUILD)/obj/tests/fuzz/%.o: tests/fuzz/%.c | $(GEN_HDR)
	@mkdir -p $(@D)
	$(CC) $(KCFLAGS) $(CFLAGS) -Iclient -MMD -MP -c -o $@ $<

$(BUILD)/fuzz-session: $(call fuzz_obj,fuzz-session harness script fields) $(SESSION_PART) $(BUILD)/libkvreg-proto.a
	$(link_fuzz) $(call fuzz_wrap,control_send handles_init) -lprotobuf-c -lseccomp

$(BUILD)/fuzz-control: $(call fuzz_obj,fuzz-control host harness script fields) $(DAEMON_PART) $(BUILD)/libkvreg-proto.a
	$(link_fuzz) $(call fuzz_wrap,spawn_session spawn_killer spawn_heir spawn_sweep waitid leaf_objects channel_send log_line) \
		-lev -linih -lcap -lsystemd -lprotobuf-c

$(BUILD)/fuzz-client: $(call fuzz_obj,fuzz-client harness script fields) $(call obj,$(CLIENT_SRC)) $(BUILD)/libkvreg-proto.a
	$(link_fuzz) $(call fuzz_wrap,connect wire_send uverbs_destroy_same_mr) -lprotobuf-c -lpthread

$(BUILD)/fuzz-config: $(call fuzz_obj,fuzz-config harness) $(call obj,daemon/config.c daemon/faults.c daemon/quota.c) $(BUILD)/libkvreg-proto.a
	$(link_fuzz) -linih -lm -lprotobuf-c

$(BUILD)/fuzz-seeds: $(call fuzz_obj,seeds seeds-session seeds-control seeds-client script fields) $(BUILD)/libkvreg-proto.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lprotobuf-c

fuzzers: $(FUZZERS:%=$(BUILD)/fuzz-%)

# The real supervisor with a session that runs its attacker's code (--wrap: nothing else differs).
$(BUILD)/attack/kvregd-session: $(BUILD)/obj/tests/attack/attack.o $(call obj,$(SESSION_SRC)) $(BUILD)/libkvreg-proto.a
	@mkdir -p $(@D)
	$(CC) $(KLDFLAGS) -pie -Wl,--wrap=handle_import_buffer -o $@ $^ -lprotobuf-c -lseccomp
	chmod 0711 $@

$(BUILD)/attack/kvregd: $(BUILD)/kvregd
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/obj/tests/attack/%.o: tests/attack/%.c | $(GEN_HDR)
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

ATTACK := $(BUILD)/attack/kvregd-session $(BUILD)/attack/kvregd

tests: $(ATTACK) $(UNIT_TESTS) $(INTEGRATION_TESTS) $(VM_PROGRAMS) $(EXAMPLES) $(UNMODIFIED)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

# ---------------------------------------------------------------- goals for people

# The demo and the tests install what is missing, then build in a make of their own: what the
# rules of this one need (protoc-c ...) may not have been there when it started.
packages:
	@tests/packages --install

demo: packages
	@$(MAKE) --no-print-directory -s all $(BUILD)/tests/vm/worker
	@BUILD=$(BUILD) DEVICE=$(DEVICE) tests/demo/demo

check: packages
	@$(MAKE) --no-print-directory -s all tests WERROR=1
	@$(FUZZ_MAKE) fuzzers
	+@$(BUNDLE_MAKE) bundle-test
	@tests/layers
	@BUILD=$(BUILD) tests/run

check-unit check-integration check-vm: check-%:
	@$(MAKE) --no-print-directory -s all tests
	@BUILD=$(BUILD) tests/run $*

check-fuzz:
	@$(FUZZ_MAKE) fuzzers
	@mkdir -p $(BUILD) && BUILD=$(BUILD) tests/run fuzz

# The programs and their tests under sanitizers; the VM's part is left out. A session is not confined
# there: a sanitizer needs calls of its own.
check-asan:
	@$(MAKE) --no-print-directory -s BUILD=$(BUILD)/asan SANITIZE=address,undefined all tests
	@BUILD=$(BUILD)/asan tests/run unit integration

check-ubsan:
	@$(MAKE) --no-print-directory -s BUILD=$(BUILD)/ubsan SANITIZE=undefined,float-cast-overflow \
		CFLAGS='$(CFLAGS) -fno-sanitize-recover=all' all tests
	@BUILD=$(BUILD)/ubsan tests/run unit integration

# Without random addresses, which kvregd hands on to its sessions: with the 32 random bits of some
# kernels (vm.mmap_rnd_bits) gcc 12's runtime does not find room for its shadow, and gives up.
check-tsan:
	@$(MAKE) --no-print-directory -s BUILD=$(BUILD)/tsan SANITIZE=thread all tests
	@BUILD=$(BUILD)/tsan $$(setarch -R true 2>/dev/null && echo setarch -R) tests/run unit integration

# The unit tests, and the library in the clients of some integration tests.
check-valgrind:
	@$(MAKE) --no-print-directory -s all tests
	@BUILD=$(BUILD) tests/run memcheck

bundle:
	+@$(BUNDLE_MAKE) tar

check-bundle:
	@$(MAKE) --no-print-directory -s all
	+@$(BUNDLE_MAKE) bundle-test
	@BUILD=$(BUILD) tests/run bundle

bench: packages
	@$(MAKE) --no-print-directory -s all $(BENCH_PROGRAMS)
	@BUILD=$(BUILD) tests/bench/bench

# FUZZ_SECONDS each (30); FUZZ="session client": those only.
fuzz: packages
	@$(FUZZ_MAKE) fuzzers
	@BUILD=$(BUILD) tests/fuzz/run $(FUZZ)

# Writes the inputs that the fuzzers start from anew, after a change of the protocol or of a fuzzer.
fuzz-seeds:
	@$(FUZZ_MAKE) $(BUILD)/fuzz/fuzz-seeds
	$(BUILD)/fuzz/fuzz-seeds tests/fuzz/corpus

lint: $(GEN_HDR) $(LIB)
	@BUILD=$(BUILD) tests/lint

format:
	clang-format -i $(filter-out tests/examples/%,$(shell git ls-files '*.[ch]'))

help:
	@echo 'make            builds everything into build/'
	@echo 'make demo       shows an unprivileged process register memory, in a VM (DEVICE=NAME: here)'
	@echo 'make check      all tests: unit, integration (mock device), the bundle, real verbs in a VM'
	@echo 'make check-unit, check-integration, check-fuzz, check-vm    one part of them'
	@echo 'make bundle     one tar with library and tools that needs nothing but libc (glibc 2.28)'
	@echo 'make check-bundle    its tests, in a Debian 11 root'
	@echo 'make check-asan, check-ubsan, check-tsan    the first two under sanitizers'
	@echo 'make check-valgrind    unit tests, and the library in clients, under memcheck'
	@echo 'make fuzz       fuzzers, FUZZ_SECONDS (30) each, FUZZ="session ..." only those; FUZZ_KEEP=1 keeps what they learn'
	@echo 'make bench      what a registration and a session cost, beside the bare alternative'
	@echo 'make lint       formatting, clang-tidy, cppcheck, shellcheck, include layers'
	@echo 'make format     formats the C sources'
	@echo 'make clean'

clean:
	rm -rf $(BUILD)

.PHONY: all tests packages demo bundle check check-bundle check-unit check-integration check-vm check-fuzz check-asan check-ubsan check-tsan check-valgrind fuzz fuzzers fuzz-seeds bench lint format help clean
.DELETE_ON_ERROR:
.SECONDARY: $(GEN_SRC) $(GEN_HDR)
