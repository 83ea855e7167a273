"""How many compiled kernels PyTorch's CPU library keeps.

oneDNN compiles a kernel for every shape of a bfloat16 product and keeps the last 1,024. Packed sequences make
new shapes in every step, so that kernels which are never used again would take several times the memory of a
small encoder.
"""

from __future__ import annotations

import os

_SETTING = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_KEPT = 64


def limit_kept_kernels() -> None:
    """Keep few kernels in this process; a number that the environment says is left as it is.

    oneDNN reads it at the first such product, so it has no effect on a process that has trained already.
    """
    os.environ.setdefault(_SETTING, str(_KEPT))
