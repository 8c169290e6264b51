#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""client/python/kvreg.py on real verbs, with the objects of python3-pyverbs. TAP. tests/vm/python.sh runs it.

test_verbs.py DEVICE GID-INDEX: with a locked-memory limit of 64 KiB and a kvregd at $KVREG_SOCKET.
"""
import errno
import mmap
import os
import resource
import sys
import time
import unittest

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../client/python"))
import kvreg
import tap

MIB = 1 << 20
PAGE = mmap.PAGESIZE
ACCESS = kvreg.LOCAL_WRITE | kvreg.REMOTE_WRITE


class Loopback:
    """A reliable queue pair that is connected to itself."""

    def __init__(self, context, pd, gid):
        self.cq = CQ(context, 1)
        self.qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(1, 1, 1, 1)))
        attributes = QPAttr(port_num=1)
        attributes.qp_access_flags = ACCESS
        attributes.dest_qp_num = self.qp.qp_num
        attributes.path_mtu = e.IBV_MTU_1024
        attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = 14, 7, 7
        attributes.ah_attr = AHAttr(port_num=1, is_global=1,
                                    gr=GlobalRoute(dgid=context.query_gid(1, gid), sgid_index=gid))
        self.qp.to_rts(attributes)

    def write(self, region, source, target, length):
        """RDMA WRITE within a region. Returns the completion's status."""
        write = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(source, length, region.lkey)],
                       send_flags=e.IBV_SEND_SIGNALED)
        write.set_wr_rdma(region.rkey, target)
        self.qp.post_send(write)
        while True:
            n, completions = self.cq.poll(1)
            if n:
                return completions[0].status

    def close(self):
        self.qp.close()
        self.cq.close()


class OnVerbs(unittest.TestCase):
    def setUp(self):
        self.context = Context(name=DEVICE)
        self.pd = PD(self.context)
        self.loopback = Loopback(self.context, self.pd, GID)
        self.k = kvreg.Connection(program="test_verbs")
        self.domain = self.k.attach(self.context, self.pd)

    def tearDown(self):
        self.k.close()
        self.loopback.close()
        self.pd.close()
        self.context.close()

    def moves(self, region, memory):
        """The first half of it by RDMA over the second, with the program's own addresses."""
        half = len(memory) // 2
        sent = os.urandom(PAGE) * (half // PAGE)
        memory[:half], memory[half:] = sent, bytes(half)
        self.assertEqual(self.loopback.write(region, region.iova, region.iova + half, half), e.IBV_WC_SUCCESS)
        self.assertTrue(memory[:half] == sent and memory[half:] == sent)

    def test_the_kernel_refuses_without_kvreg(self):
        self.assertEqual(resource.getrlimit(resource.RLIMIT_MEMLOCK), (64 << 10, 64 << 10))
        with self.assertRaises(PyverbsRDMAError) as caught:
            MR(self.pd, 64 * MIB, e.IBV_ACCESS_LOCAL_WRITE)
        self.assertEqual(caught.exception.error_code, errno.ENOMEM)

    def test_memory_of_ours_is_registered_and_data_moves(self):
        buffer = self.k.alloc(64 * MIB)
        region = self.k.register(self.domain, buffer, access=ACCESS)
        self.assertEqual((self.k.device_kind, self.domain.device), ("verbs", DEVICE))
        self.moves(region, memoryview(buffer.memory))
        region.deregister()

    def test_part_of_a_mapping_is_registered_where_it_is(self):
        fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, MIB)
        memory = mmap.mmap(fd, MIB)
        os.close(fd)
        part = memoryview(memory)[16 * PAGE:48 * PAGE]
        self.moves(self.k.register_memory(self.domain, part, ACCESS), part)

    def test_a_mapping_that_begins_within_its_memfd_is_registered_where_it_is(self):
        fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, MIB)
        memory = memoryview(mmap.mmap(fd, 32 * PAGE, offset=16 * PAGE))
        os.close(fd)
        self.moves(self.k.register_memory(self.domain, memory, ACCESS), memory)

    def test_a_region_without_remote_access_is_not_written_from_outside(self):
        buffer = self.k.alloc(2 * PAGE)
        buffer.memory[:PAGE] = b"k" * PAGE
        region = self.k.register(self.domain, buffer)
        # The refusal ends the queue pair, of which the other end may hear first.
        self.assertIn(self.loopback.write(region, region.iova, region.iova + PAGE, PAGE),
                      (e.IBV_WC_REM_ACCESS_ERR, e.IBV_WC_WR_FLUSH_ERR))
        self.assertEqual(buffer.memory[PAGE:], bytes(PAGE))

    def test_a_pd_that_is_none_is_named(self):
        with self.assertRaises(kvreg.KvregError) as caught:
            self.k.attach_pd(self.context.cmd_fd, 1000)
        self.assertEqual((caught.exception.name, caught.exception.stage), ("BAD_PD", kvreg.Stage.ATTACH))

    def test_the_pd_is_free_once_the_connection_is_closed(self):
        pd = PD(self.context)
        self.k.register(self.k.attach(self.context, pd), self.k.alloc(PAGE))
        with self.assertRaises(PyverbsRDMAError) as caught:
            pd.close()
        self.assertEqual(caught.exception.error_code, errno.EBUSY)
        self.k.close()
        pd.close()

    def test_private_memory_is_registered_by_the_program_within_a_lease(self):
        if not hasattr(kvreg._lib, "kvreg_lease_memlock"):
            self.skipTest("this library has no leases")
        before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
        with self.assertRaises(PyverbsRDMAError):
            MR(self.pd, 64 * MIB, e.IBV_ACCESS_LOCAL_WRITE)
        with self.k.lease_memlock(64 * MIB):
            mr = MR(self.pd, 64 * MIB, e.IBV_ACCESS_LOCAL_WRITE)
        mr.close()
        # What was unpinned is seen by the daemon a moment later: until then it is booked still.
        for _ in range(300):
            if resource.getrlimit(resource.RLIMIT_MEMLOCK) == before:
                break
            time.sleep(0.1)
        with self.assertRaises(PyverbsRDMAError):
            MR(self.pd, 64 * MIB, e.IBV_ACCESS_LOCAL_WRITE)


if __name__ == "__main__":
    DEVICE, GID = sys.argv[1], int(sys.argv[2])
    tap.main()
