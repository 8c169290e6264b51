# SPDX-License-Identifier: Apache-2.0
# The bundle: what runs in other distributions' containers, of nothing but libc. The Makefile reads this in a make of its
# own (BUNDLE_MAKE).
#
# All is linked with stand-ins for glibc 2.28 (old-libc), so that no newer symbol gets in: what has no version that old is
# an undefined reference at the link, and gets lines of our own in OLD_LIBC_SRC. protobuf-c is linked in; the objects of
# Debian's static library do for a shared object, since client/kvreg-client.map keeps their symbols local. What kvregctl
# uses of libsmartcols (Debian has no static one) and of libibverbs (which must be the container's) are lines of our own
# too, and grow with its use of them.

# What the tar holds, beside headers, the Python module and licences. A program or library is a target of the Makefile, linked with
# $(KLDFLAGS), and with $(LIBPROTOBUF) where it speaks the protocol.
BUNDLED := kvregctl kvreg-run libkvreg-preload.so libkvreg-client.so.$(SOVERSION)
BUNDLED_FILES := client/python/kvreg.py client/kvreg-client.h $(BUILD)/include/kvreg-errors.h
# Its licence asks for its notice.
PROTOBUF_LICENSE := /usr/share/doc/libprotobuf-c-dev/copyright

OLD_LIBC := $(BUILD)/old-libc
OLD_LIBC_SRC := client/bundle/start.c client/bundle/stat.c
CTL_STAND_INS := $(call obj,client/bundle/smartcols.c client/bundle/verbs.c)
CTL_LIBS := -ldl
LIBPROTOBUF := -l:libprotobuf-c.a
KLDFLAGS += -L$(OLD_LIBC) -Wl,--wrap=__libc_start_main

$(BUNDLED:%=$(BUILD)/%) $(BUILD)/tests/bundle/client: $(OLD_LIBC)/libc.so
$(BUILD)/kvregctl: $(CTL_STAND_INS)

$(OLD_LIBC)/compat.a: $(call obj,$(OLD_LIBC_SRC))
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

$(OLD_LIBC)/libc.so: client/bundle/old-libc $(OLD_LIBC)/compat.a
	CC='$(CC)' client/bundle/old-libc $(OLD_LIBC) $(OLD_LIBC)/compat.a

BUNDLE_NAME := kvreg-bundle-$(VERSION)-$(shell uname -m)
BUNDLE_TREE := $(BUILD)/tar/$(BUNDLE_NAME)

tar: $(BUNDLE)/$(BUNDLE_NAME).tar.gz

$(BUNDLE)/$(BUNDLE_NAME).tar.gz: $(BUNDLED:%=$(BUILD)/%) $(BUNDLED_FILES) LICENSE client/bundle/bundle.mk
	@rm -rf $(BUILD)/tar
	@mkdir -p $(BUNDLE_TREE)
	install -s -t $(BUNDLE_TREE) $(BUNDLED:%=$(BUILD)/%)
	ln -s libkvreg-client.so.$(SOVERSION) $(BUNDLE_TREE)/libkvreg-client.so
	install -m 644 -t $(BUNDLE_TREE) $(BUNDLED_FILES) LICENSE
	install -m 644 $(PROTOBUF_LICENSE) $(BUNDLE_TREE)/LICENSE.protobuf-c
	tar -C $(BUILD)/tar --sort=name --owner=0 --group=0 --numeric-owner -czf $@ $(BUNDLE_NAME)

# For the tests: a program of somebody else, as old as the rest.
bundle-test: tar $(BUILD)/tests/bundle/client

$(BUILD)/tests/bundle/client: tests/bundle/client.c $(BUILD)/libkvreg-client.so.$(SOVERSION)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -Wall -Wextra -Werror $(CFLAGS) $(KLDFLAGS) -Iclient -I$(BUILD)/include -o $@ $< \
		$(BUILD)/libkvreg-client.so.$(SOVERSION)

.PHONY: tar bundle-test
