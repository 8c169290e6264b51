# SPDX-License-Identifier: Apache-2.0
"""kvreg: register memory with an RDMA device through kvregd (libkvreg-client, by ctypes).

    with kvreg.Connection() as k:
        domain = k.attach(context, pd)                # of python3-pyverbs; else k.attach_pd(fd, handle)
        buffer = k.alloc(1 << 30)                     # buffer.memory is an mmap.mmap
        region = k.register(domain, buffer, access=kvreg.LOCAL_WRITE | kvreg.REMOTE_WRITE)
        ... post work requests with region.iova, region.lkey, region.rkey ...

Calls fail with KvregError, which has the whole failure: code, evidence, hint. What was closed, released or deregistered
raises ValueError when it is used again. A connection may be used from any thread; its calls wait for each other. Like
the library's, it belongs to the process that opened it.

Regions live until deregister(), the connection's close(), or the end of the process, whatever happens to the daemon. Close
the connection before the protection domain: the kernel frees no domain that has regions. Memory lives as long as Python
objects refer to it, and the device's pin of it as long as the region: neither depends on the other.

It needs Python 3.9 and the library, beside this file or where the loader finds it.
"""
import ctypes
import errno as _errno
import fcntl
import math
import mmap
import operator
import os
import threading
import weakref
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from enum import IntEnum

__all__ = ["Buffer", "Class", "Connection", "Domain", "KvregError", "Lease", "Region", "Stage"]

# IBV_ACCESS_* of <infiniband/verbs.h>
LOCAL_WRITE = 1 << 0
REMOTE_WRITE = 1 << 1
REMOTE_READ = 1 << 2
REMOTE_ATOMIC = 1 << 3
MW_BIND = 1 << 4
RELAXED_ORDERING = 1 << 20

Class = IntEnum("Class", "NONE INVALID LIMIT CONFIG UNSUPPORTED TRANSIENT DEVICE INTERNAL", start=0)
Class.__doc__ = "What kind of failure: enum kvreg_class."
Stage = IntEnum("Stage", "NONE CONNECT ATTACH IMPORT MAP POPULATE PIN REGISTER DEREGISTER LEASE SLICE", start=0)
Stage.__doc__ = "Where it failed: enum kvreg_stage."

_UNSUPPORTED, _DEVICE_GONE = 4, 50  # of enum kvreg_code
_MFD_HUGE_2MB = 21 << 26


class _OpenOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("socket", c_char_p), ("program", c_char_p),
                ("on_event", c_void_p), ("arg", c_void_p)]


class _BufferOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("label", c_char_p)]


class _LeaseOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("held", c_uint32), ("processes", c_uint32)]


_PROTOTYPES = {
    "kvreg_open": (c_int, POINTER(_OpenOptions), POINTER(c_void_p)),
    "kvreg_close": (None, c_void_p),
    "kvreg_device_kind": (c_char_p, c_void_p),
    "kvreg_attach_fd": (c_int, c_void_p, c_int, c_uint32, POINTER(c_void_p)),
    "kvreg_domain_device": (c_char_p, c_void_p),
    "kvreg_detach": (c_int, c_void_p),
    "kvreg_buffer_memfd": (c_int, c_void_p, c_int, c_void_p, c_uint64, POINTER(_BufferOptions), POINTER(c_void_p)),
    "kvreg_buffer_release": (c_int, c_void_p),
    "kvreg_register": (c_int, c_void_p, c_void_p, c_uint64, c_uint64, c_uint64, c_uint32, c_void_p, POINTER(c_void_p)),
    "kvreg_lkey": (c_uint32, c_void_p),
    "kvreg_rkey": (c_uint32, c_void_p),
    "kvreg_handle": (c_uint32, c_void_p),
    "kvreg_iova": (c_uint64, c_void_p),
    "kvreg_deregister": (c_int, c_void_p),
    "kvreg_last_error": (c_void_p,),
    "kvreg_error_code": (c_int, c_void_p),
    "kvreg_error_class": (c_int, c_void_p),
    "kvreg_error_stage": (c_int, c_void_p),
    "kvreg_error_errno": (c_int, c_void_p),
    "kvreg_error_name": (c_char_p, c_void_p),
    "kvreg_error_detail": (c_char_p, c_void_p),
    "kvreg_error_hint": (c_char_p, c_void_p),
    "kvreg_error_device": (c_char_p, c_void_p),
    "kvreg_error_label": (c_char_p, c_void_p),
    "kvreg_error_address": (c_uint64, c_void_p),
    "kvreg_error_length": (c_uint64, c_void_p),
    "kvreg_error_text": (c_int, c_void_p, c_char_p, c_size_t),
    "kvreg_strerror": (c_char_p, c_int),
}
# Of libraries that have leases.
_PROTOTYPES_OF_LEASES = {
    "kvreg_lease_memlock": (c_int, c_void_p, c_uint64, POINTER(_LeaseOptions), POINTER(c_void_p)),
    "kvreg_lease_end": (c_int, c_void_p),
}


def _load():
    name = "libkvreg-client.so.0"
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    library = ctypes.CDLL(beside if os.path.exists(beside) else name)
    for function, (result, *arguments) in _PROTOTYPES.items():
        getattr(library, function).restype = result
        getattr(library, function).argtypes = arguments
    for function, (result, *arguments) in _PROTOTYPES_OF_LEASES.items():
        if hasattr(library, function):
            getattr(library, function).restype = result
            getattr(library, function).argtypes = arguments
    return library


_lib = _load()


class KvregError(Exception):
    """A failure. str() is the one line that kvregctl and the daemon's log have for it too.

    code, name     of the table of failures: 40, "LIMIT_QUOTA"
    klass, stage   Class and Stage, or plain numbers that this module does not know
    errno          as the kernel gave it; 0 if no system call failed
    detail, hint   the numbers that led to it; what to change
    device, label  which device and buffer; may be empty
    address, length    of the range, in bytes
    """

    def __init__(self, text, **fields):
        super().__init__(text)
        self.code = fields["code"]
        self.name = fields["name"]
        self.klass = fields["klass"]
        self.stage = fields["stage"]
        self.errno = fields.get("errno", 0)
        self.detail = fields["detail"]
        self.hint = fields["hint"]
        self.device = fields.get("device", "")
        self.label = fields.get("label", "")
        self.address = fields.get("address", 0)
        self.length = fields.get("length", 0)


def _text(value):
    return value.decode(errors="replace")


def _member(enum, number):
    return enum(number) if number in enum._value2member_map_ else number


def _last_error():
    e = _lib.kvreg_last_error()
    line = ctypes.create_string_buffer(_lib.kvreg_error_text(e, None, 0) + 1)
    _lib.kvreg_error_text(e, line, len(line))
    return KvregError(
        _text(line.value),
        code=_lib.kvreg_error_code(e),
        name=_text(_lib.kvreg_error_name(e)),
        klass=_member(Class, _lib.kvreg_error_class(e)),
        stage=_member(Stage, _lib.kvreg_error_stage(e)),
        errno=_lib.kvreg_error_errno(e),
        detail=_text(_lib.kvreg_error_detail(e)),
        hint=_text(_lib.kvreg_error_hint(e)),
        device=_text(_lib.kvreg_error_device(e)),
        label=_text(_lib.kvreg_error_label(e)),
        address=_lib.kvreg_error_address(e),
        length=_lib.kvreg_error_length(e))


def _unsupported(stage, detail, hint, address=0, length=0):
    """Of what this module knows that it cannot be, before it asks anybody."""
    meaning = _text(_lib.kvreg_strerror(_UNSUPPORTED))
    return KvregError(f"kvreg: {stage.name.lower()} failed: UNSUPPORTED: {meaning} ({detail}): {hint}",
                      code=_UNSUPPORTED, name="UNSUPPORTED", klass=Class.UNSUPPORTED, stage=stage,
                      detail=detail, hint=hint, address=address, length=length)


def _number(name, value, bits):
    """ctypes cuts numbers off without a word."""
    value = operator.index(value)
    if not 0 <= value < 1 << bits:
        raise OverflowError(f"{name} is no unsigned {bits}-bit number: {value}")
    return value


def _address_of(memory):
    """Where the bytes of a writable, contiguous object lie, and how many they are."""
    view = memoryview(memory)
    if not view.contiguous:
        raise ValueError("the memory is not contiguous")
    if view.readonly:
        raise ValueError("the memory is read-only")
    if view.nbytes == 0:
        return 0, 0
    return ctypes.addressof(c_char.from_buffer(view.cast("B") if view.ndim else view)), view.nbytes


def _mapped_memfd(address, length):
    """(device, inode, offset) of the memfd that the whole range is one shared mapping of, or None."""
    found, at = None, address
    with open("/proc/self/maps", "rb") as maps:
        for line in maps:
            span, mode, offset, device, inode, *path = line.split(None, 5)
            start, end = (int(number, 16) for number in span.split(b"-"))
            if end <= at:
                continue
            if start > at or not mode.endswith(b"s") or not path or not path[0].startswith(b"/memfd:"):
                return None
            major, minor = (int(number, 16) for number in device.split(b":"))
            here = os.makedev(major, minor), int(inode), int(offset, 16) + address - start
            if found not in (None, here):
                return None
            found, at = here, end
            if at >= address + length:
                return found
    return None


def _open_memfd(device, inode):
    """A duplicate of an fd of this process for that file, open for read and write (mmap.mmap keeps one); or -1."""
    for number in os.listdir("/proc/self/fd"):
        try:
            fd = fcntl.fcntl(int(number), fcntl.F_DUPFD_CLOEXEC, 3)
        except OSError:
            continue  # the listing's own, or another thread's by now
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) == (device, inode):
            if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR:
                return fd
        os.close(fd)
    return -1


def _cuda_range(interface):
    address = interface["data"][0] or 0
    return address, math.prod(interface["shape"]) * int(interface["typestr"][2:])


class _Object:
    """Something that the library made in a connection: gone when it was released, or its connection closed."""

    def __init__(self, connection, pointer):
        self._connection = connection
        self._pointer = pointer

    @property
    def closed(self):
        return self._pointer is None or self._connection.closed

    def _live(self):
        if self.closed:
            raise ValueError(f"the {type(self).__name__.lower()} is closed")
        return self._pointer

    def _release(self, function, is_kept):
        """Calls it once; the library frees the object, unless is_kept() says of the result and the code that not."""
        with self._connection._guard():
            result = function(self._live())
            error = _last_error() if result < 0 else None
            if error is None or not is_kept(-result, error.code):
                self._pointer = None
        if error is not None:
            raise error

    def __enter__(self):
        return self


class Domain(_Object):
    """A protection domain of the program. device: its RDMA device's name, as the daemon found it."""

    def __init__(self, connection, pointer):
        super().__init__(connection, pointer)
        self.device = _text(_lib.kvreg_domain_device(pointer))

    def detach(self):
        self._release(_lib.kvreg_detach, lambda errno, code: errno in (_errno.EBUSY, _errno.EINVAL))


class Buffer(_Object):
    """Memory that the session may map.

    memory   the mapping: an mmap.mmap of alloc(), or what memfd() was given
    length   bytes
    """

    def __init__(self, connection, pointer, memory, length):
        super().__init__(connection, pointer)
        self.memory = memory
        self.length = length

    def release(self):
        """Regions of it stay, and so does the memory as long as anything refers to it."""
        self._release(_lib.kvreg_buffer_release, lambda errno, code: errno == _errno.EINVAL)

    def __exit__(self, *_):
        if not self.closed:
            self.release()


class Region(_Object):
    """A memory region in the program's own protection domain.

    lkey, rkey, iova    for work requests; iova is the address of its first byte
    handle              the kernel's, on the program's own uverbs fd
    length              bytes
    """

    def __init__(self, connection, pointer, length):
        super().__init__(connection, pointer)
        self.length = length

    def _ask(self, function):
        with self._connection._guard():
            return function(self._live())

    @property
    def lkey(self):
        return self._ask(_lib.kvreg_lkey)

    @property
    def rkey(self):
        return self._ask(_lib.kvreg_rkey)

    @property
    def handle(self):
        return self._ask(_lib.kvreg_handle)

    @property
    def iova(self):
        return self._ask(_lib.kvreg_iova)

    def deregister(self):
        gone = (_errno.ENOENT, _errno.EBADF)
        self._release(_lib.kvreg_deregister, lambda errno, code: errno not in gone and code != _DEVICE_GONE)

    def __exit__(self, *_):
        if not self.closed:
            self.deregister()


class Lease(_Object):
    """A raised locked-memory limit of this process, until end()."""

    def end(self):
        self._release(_lib.kvreg_lease_end, lambda errno, code: errno == _errno.EINVAL)

    def __exit__(self, *_):
        if not self.closed:
            self.end()


class Connection:
    """A connection to the daemon.

    socket    path of its socket; None: $KVREG_SOCKET, else the default
    program   a name for administrators to see; None: the program's own
    """

    def __init__(self, socket=None, program=None):
        options = _OpenOptions(size=ctypes.sizeof(_OpenOptions),
                               socket=os.fsencode(socket) if socket is not None else None,
                               program=program.encode() if program is not None else None)
        pointer = c_void_p()
        self._pid, self._lock = os.getpid(), threading.Lock()
        self._finalizer = None
        if _lib.kvreg_open(byref(options), byref(pointer)) < 0:
            raise _last_error()
        self._pointer = pointer.value
        self._finalizer = weakref.finalize(self, _lib.kvreg_close, self._pointer)
        # At the end of the process the kernel takes all back; another thread may still be in a call.
        self._finalizer.atexit = False

    @property
    def closed(self):
        return self._finalizer is None or not self._finalizer.alive

    def close(self):
        """Destroys the regions that are left, and ends what was made through the connection."""
        with self._guard():
            self._finalizer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _guard(self):
        """No object is used by one thread while another closes it. In a child the parent's other threads are no more."""
        if self._pid != os.getpid():
            self._pid, self._lock = os.getpid(), threading.Lock()
        return self._lock

    def _live(self):
        if self.closed:
            raise ValueError("the connection is closed")
        return self._pointer

    def _make(self, function, *arguments):
        """Calls it with arguments and an out-pointer. The caller has the lock."""
        made = c_void_p()
        if function(*arguments, byref(made)) < 0:
            raise _last_error()
        return made.value

    def _owned(self, thing):
        if thing._connection is not self:
            raise ValueError(f"the {type(thing).__name__.lower()} is of another connection")
        return thing._live()

    @property
    def device_kind(self):
        """What stands behind the daemon: "verbs", or "mock" for tests."""
        with self._guard():
            return _text(_lib.kvreg_device_kind(self._live()))

    def attach_pd(self, fd, handle):
        """A domain of the uverbs fd and the kernel's handle of the protection domain."""
        fd = fd if isinstance(fd, int) else fd.fileno()
        fd, handle = _number("fd", fd, 31), _number("handle", handle, 32)
        with self._guard():
            return Domain(self, self._make(_lib.kvreg_attach_fd, self._live(), fd, handle))

    def attach(self, context, pd):
        """The same of a pyverbs.device.Context and a pyverbs.pd.PD."""
        return self.attach_pd(context.cmd_fd, pd.handle)

    def alloc(self, size, label=None, huge=False):
        """A buffer of memory of its own. huge: of 2 MiB pages from the host's pool."""
        page = 2 << 20 if huge else mmap.PAGESIZE
        length = -(-_number("size", size, 62) // page) * page
        flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | (os.MFD_HUGETLB | _MFD_HUGE_2MB if huge else 0)
        fd = os.memfd_create(label or "kvreg", flags)
        try:
            os.ftruncate(fd, length)
            return self.memfd(fd, memory=mmap.mmap(fd, length), label=label)
        finally:
            os.close(fd)

    def memfd(self, fd, length=None, memory=None, label=None):
        """A buffer of the first length bytes (None: all) of a memfd of the program's.

        memory   the program's mapping of it from byte 0, if it has one: some drivers need its address. The session refuses
                 memory without pages, so they are populated. F_SEAL_SHRINK is added.
        """
        fd = _number("fd", fd if isinstance(fd, int) else fd.fileno(), 31)
        length = _number("length", os.fstat(fd).st_size if length is None else length, 64)
        address = None
        if memory is not None:
            address, mapped = _address_of(memory)
            if mapped < length:
                raise ValueError(f"the memory has {mapped} bytes, the buffer {length}")
        return Buffer(self, self._import(fd, address, length, label), memory, length)

    def _import(self, fd, address, length, label):
        options = _BufferOptions(size=ctypes.sizeof(_BufferOptions), label=label.encode() if label else None)
        with self._guard():
            return self._make(_lib.kvreg_buffer_memfd, self._live(), fd, address, length, byref(options))

    def register(self, domain, buffer, offset=0, length=None, iova=0, access=LOCAL_WRITE):
        """A region of a range of a buffer (length None: to its end). iova 0: the program's own address of it."""
        offset, iova = _number("offset", offset, 64), _number("iova", iova, 64)
        length = _number("length", max(buffer.length - offset, 0) if length is None else length, 64)
        access = _number("access", access, 32)
        with self._guard():
            pointer = self._make(_lib.kvreg_register, self._owned(domain), self._owned(buffer), offset, length, iova,
                                 access, None)
        return Region(self, pointer, length)

    def register_memory(self, domain, memory, access=LOCAL_WRITE, iova=0):
        """A region of memory that is there already: of what has the buffer protocol and lies in a shared mapping of a
        memfd that this process has open for read and write, as an mmap.mmap of one has, and a numpy array over that.

        Other memory no other process can map, and GPU memory (__cuda_array_interface__) is not supported yet.
        """
        if hasattr(memory, "__cuda_array_interface__"):
            address, length = _cuda_range(memory.__cuda_array_interface__)
            raise _unsupported(Stage.IMPORT, f"{length} bytes of GPU memory at {address:#x}",
                               "register it with a call of your own: ibv_reg_dmabuf_mr, or ibv_reg_mr with nvidia_peermem",
                               address, length)
        address, length = _address_of(memory)
        file = _mapped_memfd(address, length)
        fd = _open_memfd(*file[:2]) if file else -1
        if fd < 0:
            what = "memory of a memfd that is not open for read and write" if file else "private memory"
            raise _unsupported(Stage.IMPORT, f"{length} bytes of {what} at {address:#x}",
                               "keep it in a buffer of alloc(), or lease_memlock() its length and register it with a call "
                               "of your own (ibv_reg_mr, pyverbs.mr.MR)", address, length)
        try:
            return self._register_mapped(domain, fd, file, address, length, access, iova)
        finally:
            os.close(fd)

    def _register_mapped(self, domain, fd, file, address, length, access, iova):
        offset = file[2]
        whole = _mapped_memfd(address - offset, offset + length) == (file[0], file[1], 0)
        pointer = self._import(fd, address - offset if whole else None, offset + length, None)
        with Buffer(self, pointer, None, offset + length) as buffer:
            return self.register(domain, buffer, offset, length, iova or address, access)

    def lease_memlock(self, size, held=False, processes=1):
        """Raises this process's locked-memory limit until the lease's end(), so that it can pin size bytes by itself.

        held         until the process ends, whatever becomes of the lease; size 0 is as much as the quota allows
        processes    that a held lease is booked for: children inherit the limit
        """
        if not hasattr(_lib, "kvreg_lease_memlock"):
            raise _unsupported(Stage.LEASE, "this libkvreg-client has no leases", "update libkvreg-client")
        options = _LeaseOptions(ctypes.sizeof(_LeaseOptions), bool(held), _number("processes", processes, 32) if held else 0)
        size = _number("size", size, 64)
        with self._guard():
            return Lease(self, self._make(_lib.kvreg_lease_memlock, self._live(), size, byref(options)))
