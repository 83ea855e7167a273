"""Names of the devices that torch computes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.errors import UsageError

if TYPE_CHECKING:
    import torch


def torch_device(name: str | None) -> torch.device:
    """The device of that name, checked to exist here.

    Args:
        name: `"cpu"`, `"cuda"`, `"cuda:1"`, `"mps"` and the like; `"auto"` for the fastest there is; None
            for the CPU.

    Raises:
        UsageError: torch does not know the device, or this machine does not have it.

    Example:
        >>> torch_device(None)
        device(type='cpu')
    """
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name or "cpu")
    except RuntimeError as error:
        raise UsageError(f"expected a device such as cpu, cuda or mps, found {name!r}") from error
    missing = (device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count()) or (
        device.type == "mps" and not torch.backends.mps.is_available()
    )
    if missing:
        raise UsageError(f"this machine has no device {name}", remedy="use device cpu")
    return device
