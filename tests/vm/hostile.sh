#!/usr/bin/env bash
# Integration tests on real verbs, as root with leaves: what a client can do wrong, the kernel answers here. Those that
# have nothing to do with a device are left out. Wants secretmem.enable=1 among the kernel's arguments.
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
for test in hostile ownership stuck refused again books register buffers quota lifecycle faults states; do
	began=$SECONDS
	CMOCKA_MESSAGE_OUTPUT=TAP timeout 200 "$KVREG_BUILD/tests/integration/test-$test" || rc=1
	echo "# $test: $((SECONDS - began)) s"
done
exit $rc
