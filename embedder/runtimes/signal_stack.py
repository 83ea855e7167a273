"""Keeps the thread's signal stack while a native library loads.

OpenVINO gives the thread that loads a model an alternate signal stack of the least size that the kernel takes
(seen in 2026.4 on x86). Python's signal handlers run on such a stack, for which it is too small as soon as
wide registers are in use: the first Ctrl-C would end the process with a segmentation fault.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager


class _Stack(ctypes.Structure):
    """`stack_t` of Linux."""

    _fields_ = (("pointer", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


@contextmanager
def kept_signal_stack() -> Iterator[None]:
    """Give this thread back, afterwards, the signal stack that it has now; does nothing but on Linux.

    Example:
        >>> with kept_signal_stack():
        ...     pass
    """
    if os.name != "posix" or os.uname().sysname != "Linux":
        yield
        return
    libc = ctypes.CDLL(None)
    before = _Stack()
    known = libc.sigaltstack(None, ctypes.byref(before)) == 0
    try:
        yield
    finally:
        if known:
            libc.sigaltstack(ctypes.byref(before), None)
