"""Random state of a training run: seeded per micro-batch, saved and restored with a checkpoint."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor


def seed_for(*parts: int) -> int:
    """A 63-bit seed from several numbers, unrelated for neighbouring ones.

    Example:
        >>> seed_for(1, 2) != seed_for(2, 1)
        True
    """
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def seed_batch(*parts: int) -> None:
    """Seed torch for one micro-batch.

    Dropout then depends on the batch and not on the history of the process, so that it is the same after a
    resume and in whichever process the batch lands.
    """
    torch.manual_seed(seed_for(*parts))


def capture() -> tuple[dict[str, Any], dict[str, Tensor]]:
    """State of the generators of Python, numpy, torch and every GPU: what JSON can hold, and tensors."""
    version, internal, gauss = random.getstate()
    kind, keys, at, has_gauss, cached = np.random.get_state(legacy=True)
    values = {
        "python": [version, list(internal), gauss],
        "numpy": [kind, np.asarray(keys).tolist(), int(at), int(has_gauss), float(cached)],
    }
    tensors = {"torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        tensors |= {f"cuda{number}": state for number, state in enumerate(torch.cuda.get_rng_state_all())}
    return values, tensors


def restore(values: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Set all generators to a captured state; GPUs that this machine lacks are left out."""
    version, internal, gauss = values["python"]
    random.setstate((version, tuple(internal), gauss))
    kind, keys, at, has_gauss, cached = values["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), at, has_gauss, cached))
    torch.set_rng_state(tensors["torch"])
    for number in range(torch.cuda.device_count()):
        if f"cuda{number}" in tensors:
            torch.cuda.set_rng_state(tensors[f"cuda{number}"], number)
