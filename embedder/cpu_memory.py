"""How much memory the libraries below PyTorch keep on a CPU of what they could give back.

oneDNN compiles a kernel for every shape of a bfloat16 product and keeps the last 1,024. Packed sequences make
new shapes in every step, so that kernels which are never used again would take several times the memory of a
small encoder.

The heap of glibc keeps blocks that were freed, for later ones of their size. With new shapes in every batch
few fit again, and the heap grows to several times what is in use at once. It can be asked to give back what
is free, from time to time, or never to hold large blocks at all.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time

_SETTING = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_KEPT = 64

_M_MMAP_THRESHOLD = -3  # of mallopt(3)
_LARGE = 1 << 20  # bytes

_PAUSE = 30.0  # seconds


def limit_kept_kernels() -> None:
    """Keep few kernels in this process; a number that the environment says is left as it is.

    oneDNN reads it at the first such product, so it has no effect on a process that has trained already.
    """
    os.environ.setdefault(_SETTING, str(_KEPT))


class FreeMemory:
    """Gives the memory that is free in the heap back to the system, at most twice a minute.

    Each time costs up to a second, most of it for pages that are needed again.
    """

    def __init__(self) -> None:
        self._last = time.monotonic()

    def give_back(self) -> None:
        """Give it back if the last time was long enough ago."""
        if time.monotonic() - self._last >= _PAUSE:
            _call("malloc_trim", 0)
            self._last = time.monotonic()


def give_back_large_blocks() -> bool:
    """Take blocks of a megabyte or more from the system one by one, and give each back when it is freed.

    It holds for the rest of the process and costs about a tenth of the time of training, for pages that have
    to be cleared again, so it is for runs that were asked to save memory.

    Returns:
        Whether the C library can be told so, as glibc can.
    """
    return bool(_call("mallopt", _M_MMAP_THRESHOLD, _LARGE))


def _call(name: str, *arguments: int) -> int:
    """Call a function of glibc; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    try:
        return int(getattr(ctypes.CDLL(None), name)(*arguments))
    except (OSError, AttributeError):  # another C library
        return 0
