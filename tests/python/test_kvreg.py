#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""client/python/kvreg.py against the real daemon on its mock device. TAP."""
import errno
import gc
import mmap
import os
import re
import resource
import signal
import sys
import threading
import traceback
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../client/python"))
import daemon
import kvreg
import tap
from daemon import wait_until

MIB = 1 << 20
PAGE = mmap.PAGESIZE
QUOTA = 64 * MIB
WRITE = kvreg.LOCAL_WRITE


def memfd(size):
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    return fd


class GpuArray:
    """What PyTorch and CuPy have in common."""

    __cuda_array_interface__ = {"data": (0x7F0000000000, False), "shape": (4, 1024), "typestr": "<f4", "version": 3}


class OnMock(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = daemon.Daemon(f"[uid {os.getuid()}]\nbytes = {QUOTA}\n")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.end()

    def setUp(self):
        self.fds = len(os.listdir("/proc/self/fd"))
        self.device = os.open("/dev/null", os.O_RDWR)
        self.k = kvreg.Connection(program="test_kvreg")
        self.addCleanup(self.k.close)
        self.domain = self.k.attach_pd(self.device, 0)

    def tearDown(self):
        self.k.close()
        os.close(self.device)
        self.daemon.idle()
        gc.collect()  # exceptions hold on to the frames that they passed
        self.assertEqual(len(os.listdir("/proc/self/fd")), self.fds)

    def regions(self):
        return [(r["length"], r["access"]) for r in self.daemon.ask("regions")]

    def fails(self, name, function, *arguments, **options):
        with self.assertRaises(kvreg.KvregError) as caught:
            function(*arguments, **options)
        self.assertEqual(caught.exception.name, name)
        return caught.exception


class Registers(OnMock):
    def test_a_region_has_keys_and_is_the_daemons_until_it_is_deregistered(self):
        buffer = self.k.alloc(MIB + 1)
        self.assertEqual(buffer.length, MIB + PAGE)
        region = self.k.register(self.domain, buffer, offset=PAGE, length=MIB, access=WRITE | kvreg.REMOTE_READ)
        self.assertEqual(self.regions(), [(MIB, WRITE | kvreg.REMOTE_READ)])
        self.assertEqual(region.length, MIB)
        self.assertEqual(region.iova % PAGE, 0)
        self.assertNotEqual(region.iova, 0)
        other = self.k.register(self.domain, buffer)
        self.assertEqual(other.length, buffer.length)
        self.assertEqual(other.iova, region.iova - PAGE)
        self.assertNotEqual(other.handle, region.handle)
        self.assertNotEqual(other.lkey, region.lkey)
        self.assertNotEqual(other.rkey, region.rkey)
        region.deregister()
        other.deregister()
        self.assertEqual(self.regions(), [])

    def test_work_requests_may_use_an_iova_of_the_programs(self):
        region = self.k.register(self.domain, self.k.alloc(PAGE), iova=0x10000000)
        self.assertEqual(region.iova, 0x10000000)

    def test_a_domain_knows_its_device_and_a_connection_what_stands_behind(self):
        self.assertEqual(self.domain.device, "mock0")
        self.assertEqual(self.k.device_kind, "mock")

    def test_the_programs_own_memfd_becomes_a_buffer(self):
        fd = memfd(4 * PAGE)
        with mmap.mmap(fd, 4 * PAGE) as memory:
            buffer = self.k.memfd(fd, 2 * PAGE, memory, label="kv cache")
            os.close(fd)
            self.k.register(self.domain, buffer)
            self.assertEqual(self.regions(), [(2 * PAGE, WRITE)])
            buffer.release()
            self.assertEqual(self.regions(), [(2 * PAGE, WRITE)])
            del buffer

    def test_with_ends_what_it_began(self):
        with self.k.alloc(PAGE) as buffer, self.k.register(self.domain, buffer) as region:
            self.assertEqual(self.regions(), [(PAGE, WRITE)])
        self.assertTrue(region.closed)
        self.assertTrue(buffer.closed)
        self.assertEqual(self.regions(), [])

    def test_a_pyverbs_context_and_pd_are_taken_for_what_they_hold(self):
        class Context:
            cmd_fd = self.device

        class Pd:
            handle = 7

        self.k.register(self.k.attach(Context, Pd), self.k.alloc(PAGE))

    def test_what_was_forgotten_is_closed(self):
        k = kvreg.Connection()
        k.register(k.attach_pd(self.device, 0), k.alloc(PAGE))
        self.assertEqual(self.regions(), [(PAGE, WRITE)])
        del k
        wait_until(lambda: self.regions() == [])


class RegistersMemory(OnMock):
    def setUp(self):
        super().setUp()
        fd = memfd(16 * PAGE)
        self.memory = mmap.mmap(fd, 16 * PAGE)
        os.close(fd)

    def tearDown(self):
        self.memory.close()
        super().tearDown()

    def test_a_mapping_of_a_memfd(self):
        region = self.k.register_memory(self.domain, self.memory, WRITE | kvreg.REMOTE_WRITE)
        self.assertEqual(self.regions(), [(16 * PAGE, WRITE | kvreg.REMOTE_WRITE)])
        self.assertEqual(region.iova, kvreg._address_of(self.memory)[0])

    def test_a_part_of_one(self):
        part = memoryview(self.memory)[3 * PAGE:5 * PAGE]
        whole, (address, length) = kvreg._address_of(self.memory)[0], kvreg._address_of(part)
        self.assertEqual((address, length), (whole + 3 * PAGE, 2 * PAGE))
        region = self.k.register_memory(self.domain, part)
        self.assertEqual((region.iova, region.length), (address, length))
        part.release()

    def test_a_mapping_that_begins_within_the_memfd(self):
        fd = memfd(8 * PAGE)
        with mmap.mmap(fd, 2 * PAGE, offset=4 * PAGE) as memory:
            os.close(fd)
            region = self.k.register_memory(self.domain, memory)
            self.assertEqual((region.iova, region.length), (kvreg._address_of(memory)[0], 2 * PAGE))

    def test_private_memory_is_refused_with_what_to_do_instead(self):
        memory = bytearray(8 * PAGE)
        e = self.fails("UNSUPPORTED", self.k.register_memory, self.domain, memory)
        self.assertIn("private memory", e.detail)
        self.assertIn("lease_memlock()", e.hint)
        self.assertIn("ibv_reg_mr", e.hint)
        self.assertEqual((e.address, e.length), kvreg._address_of(memory))

    def test_a_private_mapping_of_a_memfd_is_private_memory(self):
        fd = memfd(PAGE)
        with mmap.mmap(fd, PAGE, flags=mmap.MAP_PRIVATE) as memory:
            os.close(fd)
            self.assertIn("private memory", str(self.fails("UNSUPPORTED", self.k.register_memory, self.domain, memory)))

    def test_memory_of_a_gpu_is_refused_as_such(self):
        e = self.fails("UNSUPPORTED", self.k.register_memory, self.domain, GpuArray())
        self.assertEqual((e.address, e.length), (0x7F0000000000, 4 * 1024 * 4))
        self.assertEqual((e.code, e.klass, e.stage), (4, kvreg.Class.UNSUPPORTED, kvreg.Stage.IMPORT))
        self.assertIn("GPU memory", e.detail)
        self.assertIn("ibv_reg_dmabuf_mr", e.hint)

    def test_what_is_read_only_or_scattered_is_a_mistake_of_the_caller(self):
        for memory in b"constant", memoryview(self.memory)[::2]:
            with self.assertRaises(ValueError):
                self.k.register_memory(self.domain, memory)
        del memory


class Fails(OnMock):
    def test_each_field_of_a_failure(self):
        buffer = self.k.alloc(PAGE, label="kv cache")
        e = self.fails("SHORT_HANDLE", self.k.register, self.domain, buffer, length=2 * PAGE)
        self.assertEqual((e.code, e.klass, e.stage, e.errno), (29, kvreg.Class.INVALID, kvreg.Stage.REGISTER, 0))
        self.assertEqual((e.label, e.device, e.length), ("kv cache", "mock0", 2 * PAGE))
        self.assertIn(str(2 * PAGE), e.detail)
        self.assertIn("ftruncate", e.hint)
        self.assertRegex(str(e), r"^kvreg: register failed: SHORT_HANDLE: .* \(" + re.escape(e.detail) + r"\): " +
                         re.escape(e.hint) + "$")

    def test_the_address_of_a_failure(self):
        buffer = self.k.alloc(2 * PAGE)
        address = kvreg._address_of(buffer.memory)[0]
        e = self.fails("ALIGNMENT", self.k.register, self.domain, buffer, PAGE, PAGE, iova=8)
        self.assertEqual((e.address, e.length), (address + PAGE, PAGE))

    def test_the_kernels_errno_of_a_failure(self):
        e = self.fails("NO_DAEMON", kvreg.Connection, socket="/nowhere/kvregd.sock")
        self.assertEqual((e.errno, e.klass, e.stage), (errno.ENOENT, kvreg.Class.CONFIG, kvreg.Stage.CONNECT))
        self.assertIn("/nowhere/kvregd.sock", e.detail)

    def test_the_quota_is_named(self):
        e = self.fails("LIMIT_QUOTA", self.k.register, self.domain, self.k.alloc(2 * QUOTA))
        self.assertEqual((e.klass, e.stage), (kvreg.Class.LIMIT, kvreg.Stage.PIN))
        self.assertIn(str(QUOTA), e.detail)
        self.assertIn("kvregd.conf", e.hint)

    def test_a_failure_is_of_its_own_thread(self):
        errors = {}

        def fail(length):
            errors[length] = self.fails("SHORT_HANDLE", self.k.register, self.domain, buffer, length=length).length

        buffer = self.k.alloc(PAGE)
        threads = [threading.Thread(target=fail, args=(n * PAGE,)) for n in range(2, 18)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, {n * PAGE: n * PAGE for n in range(2, 18)})

    def test_numbers_are_not_cut_off(self):
        buffer = self.k.alloc(PAGE)
        for options in {"offset": -1}, {"length": 1 << 64}, {"iova": -1}, {"access": 1 << 32}:
            with self.assertRaises(OverflowError):
                self.k.register(self.domain, buffer, **options)
        with self.assertRaises(OverflowError):
            self.k.attach_pd(self.device, 1 << 32)

    def test_classes_and_stages_are_those_of_the_table(self):
        with open(os.path.join(os.path.dirname(__file__), "../../proto/error.def")) as table:
            rows = re.findall(r"^(CLASS|STAGE)\((\d+), (\w+)", table.read(), re.MULTILINE)
        for kind, enum in ("CLASS", kvreg.Class), ("STAGE", kvreg.Stage):
            self.assertEqual({e.name: int(e) for e in enum}, {row[2]: int(row[1]) for row in rows if row[0] == kind})


def may_raise_limits():
    """Whether a daemon that we start may: CAP_SYS_RESOURCE."""
    with open("/proc/self/status") as status:
        return int(re.search(r"^CapEff:\s*(\w+)", status.read(), re.MULTILINE)[1], 16) >> 24 & 1


class Leases(OnMock):
    def test_a_lease_raises_this_processs_limit_until_its_end(self):
        if not hasattr(kvreg._lib, "kvreg_lease_memlock"):  # of a library that has none it is said
            self.assertEqual(self.fails("UNSUPPORTED", self.k.lease_memlock, MIB).stage, kvreg.Stage.LEASE)
            return
        if not may_raise_limits():  # tests/python/test_verbs.py has one in the VM
            self.assertEqual(self.fails("LIMIT_MEMLOCK", self.k.lease_memlock, QUOTA // 2).stage, kvreg.Stage.LEASE)
            return
        pid = os.fork()
        if pid == 0:
            try:
                resource.setrlimit(resource.RLIMIT_MEMLOCK, (PAGE, PAGE))
                with kvreg.Connection() as k:
                    with k.lease_memlock(MIB) as lease:
                        self.assertGreaterEqual(resource.getrlimit(resource.RLIMIT_MEMLOCK)[0], MIB)
                    self.assertEqual(resource.getrlimit(resource.RLIMIT_MEMLOCK)[0], PAGE)
                    self.assertRaises(ValueError, lease.end)
                    e = self.fails("LIMIT_QUOTA", k.lease_memlock, 2 * QUOTA)
                    self.assertEqual(e.stage, kvreg.Stage.LEASE)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)


class Ends(OnMock):
    def test_nothing_is_used_after_its_end(self):
        buffer = self.k.alloc(PAGE)
        region = self.k.register(self.domain, buffer)
        region.deregister()
        for use in region.deregister, lambda: region.lkey, lambda: region.rkey, lambda: region.handle, lambda: region.iova:
            self.assertRaises(ValueError, use)
        buffer.release()
        for use in buffer.release, lambda: self.k.register(self.domain, buffer):
            self.assertRaises(ValueError, use)
        self.domain.detach()
        for use in self.domain.detach, lambda: self.k.register(self.domain, self.k.alloc(PAGE)):
            self.assertRaises(ValueError, use)

    def test_nothing_is_used_after_the_connection_was_closed(self):
        buffer = self.k.alloc(PAGE)
        region = self.k.register(self.domain, buffer)
        self.k.close()
        self.k.close()
        for use in (lambda: region.lkey, region.deregister, buffer.release, self.domain.detach,
                    lambda: self.k.register(self.domain, buffer), lambda: self.k.alloc(PAGE),
                    lambda: self.k.attach_pd(self.device, 0), lambda: self.k.device_kind):
            self.assertRaises(ValueError, use)

    def test_memory_outlives_the_connection(self):
        memory = memoryview(self.k.alloc(PAGE).memory)
        memory[:5] = b"cache"
        self.k.close()
        self.assertEqual(bytes(memory[:5]), b"cache")

    def test_a_domain_with_a_region_stays(self):
        region = self.k.register(self.domain, self.k.alloc(PAGE))
        self.fails("BUSY", self.domain.detach)
        region.deregister()
        self.domain.detach()

    def test_what_is_of_another_connection_is_refused(self):
        with kvreg.Connection() as other:
            self.assertRaises(ValueError, self.k.register, self.domain, other.alloc(PAGE))

    def test_a_child_is_told_and_leaves_the_parents_regions_alone(self):
        region = self.k.register(self.domain, self.k.alloc(PAGE))
        pid = os.fork()
        if pid == 0:
            try:
                self.fails("FORKED", self.k.alloc, PAGE)
                self.fails("FORKED", region.deregister)
                self.k.close()
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(self.regions(), [(PAGE, WRITE)])
        region.deregister()

    def test_a_session_that_is_gone_is_said(self):
        buffer = self.k.alloc(PAGE)
        os.kill(self.daemon.ask("clients")[0]["session_pid"], signal.SIGKILL)
        e = self.fails("SESSION_LOST", self.k.register, self.domain, buffer)
        self.assertEqual(e.klass, kvreg.Class.TRANSIENT)
        buffer.release()


class Threads(OnMock):
    def run_all(self, functions):
        problems = []

        def run(function):
            try:
                function()
            except BaseException as problem:
                problems.append(problem)

        threads = [threading.Thread(target=run, args=(function,)) for function in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return problems

    def test_many_register_on_one_connection(self):
        buffer = self.k.alloc(64 * PAGE)

        def work(n):
            for _ in range(20):
                with self.k.register(self.domain, buffer, n * PAGE, PAGE) as region:
                    self.assertEqual(region.iova % PAGE, 0)

        self.assertEqual(self.run_all([lambda n=n: work(n) for n in range(16)]), [])
        self.assertEqual(self.regions(), [])

    def test_one_closes_while_others_register(self):
        buffer = self.k.alloc(64 * PAGE)
        begun = threading.Barrier(9)

        def work(n):
            self.k.register(self.domain, buffer, n * PAGE, PAGE).deregister()
            begun.wait()
            while True:
                self.k.register(self.domain, buffer, n * PAGE, PAGE).deregister()

        def close():
            begun.wait()
            self.k.close()

        problems = self.run_all([lambda n=n: work(n) for n in range(8)] + [close])
        self.assertEqual([str(p) for p in problems if type(p) is not ValueError], [])
        self.assertEqual(len(problems), 8)

    def test_one_region_is_deregistered_once(self):
        region = self.k.register(self.domain, self.k.alloc(PAGE))
        problems = self.run_all([region.deregister] * 8)
        self.assertEqual([type(p) for p in problems], [ValueError] * 7)


if __name__ == "__main__":
    tap.main()
