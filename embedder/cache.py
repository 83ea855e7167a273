"""Where prepared encoders are kept between runs, and how files get there. Everything in it can be rebuilt.

Nothing here knows what a file means. Writers never change a published file: they write beside it and rename.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from likewise.embedder.spec import JsonObject

CACHE_VARIABLE = "LIKEWISE_CACHE"


def cache_root() -> Path:
    """The cache folder: `LIKEWISE_CACHE`, else the platform's cache folder of this user."""
    override = os.environ.get(CACHE_VARIABLE)
    if override:
        return Path(override).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("likewise", appauthor=False)


def writable(folder: Path) -> bool:
    """Create the folder if need be and say whether files can be made in it."""
    import tempfile

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: readers see the old content or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not by `tempfile`, whose files nobody but their owner may read.
    temporary = path.with_name(f".{path.name}-{os.urandom(8).hex()}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_json(path: Path, content: JsonObject) -> None:
    """Write a JSON object whole or not at all."""
    write_bytes(path, json.dumps(content, indent=1, ensure_ascii=False).encode())


def read_json(path: Path) -> JsonObject:
    """The JSON object in a cache file, or an empty one where it is missing, damaged or something else."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
