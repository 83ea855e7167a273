"""Optional dependencies: import one, or say which command installs it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from likewise.errors import MissingExtra


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional module.

    A module that is installed but broken raises its own error: hiding that behind "not installed" would
    send people the wrong way.

    Args:
        module: Dotted name of the module, such as `matplotlib.pyplot`.
        extra: The extra of likewise that brings it.
        purpose: What the module is needed for, as in "drawing the loss curve".

    Raises:
        MissingExtra: The top-level package is not installed.

    Example:
        >>> require("no_such_module", extra="plots", purpose="drawing plots")
        Traceback (most recent call last):
        ...
        likewise.errors.MissingExtra: drawing plots needs no_such_module, which is not installed
          try: pip install 'likewise[plots]'
    """
    package = module.partition(".")[0]
    if find_spec(package) is None:
        raise MissingExtra(
            f"{purpose} needs {package}, which is not installed",
            remedy=f"pip install 'likewise[{extra}]'",
        )
    return import_module(module)
