#!/usr/bin/env bash
# The integration tests on real verbs, as root with leaves: what a client can do wrong, the kernel answers here. Wants
# secretmem.enable=1 among the kernel's arguments.
set -u
rc=0
export KVREG_TEST_DEVICE=verbs KVREG_TEST_EXT4=/mnt

ext4() {
	truncate -s 16M /tmp/ext4.img
	mkfs.ext4 -q /tmp/ext4.img
	mount -o loop /tmp/ext4.img /mnt
}

modprobe -a fuse cuse loop ext4 || rc=1
ext4 || rc=1
echo 8 >/proc/sys/vm/nr_hugepages
for program in "$KVREG_BUILD"/tests/integration/test-*; do
	CMOCKA_MESSAGE_OUTPUT=TAP timeout 120 "$program" || rc=1
done
exit $rc
