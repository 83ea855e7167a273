"""Names of documents: how a file is called in the index. Pure functions of paths; nothing is opened."""

from __future__ import annotations

import os
from pathlib import Path


def document_key(path: Path, base: Path) -> str:
    r"""Name of a file in the index.

    Args:
        path: Absolute path.
        base: Absolute path of the folder that holds the index folder.

    Example:
        >>> document_key(Path("/notes/a/b.md"), Path("/notes"))
        'a/b.md'
        >>> document_key(Path("/mail/b\udcff.md"), Path("/notes"))
        '/mail/b\\xff.md'
    """
    if path.is_relative_to(base):
        path = path.relative_to(base)
    return readable(path.as_posix())


def readable(name: str) -> str:
    """A name that can be printed and stored: bytes that are not UTF-8 become escapes."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")
