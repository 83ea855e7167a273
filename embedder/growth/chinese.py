"""The Chinese that the default encoder is extended by: rows for characters and words, shipped with likewise.

The published all-MiniLM-L6-v2 knows 244 Chinese characters. `resources/chinese.txt` lists what is added or
replaced, one row a line, the Traditional and Simplified forms that share it side by side, and
`chinese.safetensors` has the rows in 8 bits. Nothing else of the model changes, so texts without Chinese keep
their vectors to the last bit. `benchmarks/chinese_extension.py` makes both files; whose texts they were
learned from is in `resources/ATTRIBUTION.md`. Must not import torch or transformers.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.cache import cache_root, read_json, writable, write_json
from likewise.embedder.fingerprint import sha256_of
from likewise.errors import ChecksumMismatch

RESOURCES = Path(__file__).parent / "resources"
# Of chinese.txt and chinese.safetensors, one after the other: names the extended model in the cache.
EXTENSION_SHA256 = "7ad86de4ba47814b76236b89ea3da8b31c8db6ef87304bae1da3bb9122a34837"
_ORIGIN = "extension.json"


@dataclass(frozen=True, slots=True, eq=False)
class Extension:
    """Tokens and their rows.

    Attributes:
        forms: Forms that share a row, for each row.
        rows: float32 of shape (rows, width).
    """

    forms: tuple[tuple[str, ...], ...]
    rows: NDArray[np.float32]

    @property
    def tokens(self) -> list[str]:
        """All forms, in the order of their rows."""
        return [form for group in self.forms for form in group]

    def expanded(self) -> NDArray[np.float32]:
        """A row for each of the tokens, float32 of shape (tokens, width)."""
        return np.repeat(self.rows, [len(group) for group in self.forms], axis=0)


def read_extension(folder: Path = RESOURCES) -> Extension:
    """The extension as it is shipped.

    Raises:
        ChecksumMismatch: The files are not those that belong to this version of likewise.
    """
    from safetensors.numpy import load_file

    names, weights = folder / "chinese.txt", folder / "chinese.safetensors"
    if folder == RESOURCES and (found := extension_digest(folder)) != EXTENSION_SHA256:
        raise ChecksumMismatch(
            f"expected SHA-256 {EXTENSION_SHA256[:16]}... of the files in {folder}, found {found[:16]}...",
            remedy="install likewise again: a file of it was damaged or replaced",
        )
    tensors = load_file(weights)
    forms = tuple(tuple(line.split(" ")) for line in names.read_text("utf-8").splitlines())
    return Extension(forms, tensors["rows"].astype(np.float32) * tensors["scale"])


def write_extension(extension: Extension, folder: Path) -> None:
    """Write both files, the rows rounded to 8 bits: each is its largest value times whole 127ths."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    lines = [" ".join(group) for group in extension.forms]
    (folder / "chinese.txt").write_text("\n".join(lines) + "\n", "utf-8", newline="\n")
    scale = np.maximum(np.abs(extension.rows).max(axis=1, keepdims=True) / 127, np.float32(1e-12))
    rounded = np.rint(extension.rows / scale).astype(np.int8)
    save_file({"rows": rounded, "scale": scale.astype(np.float32)}, folder / "chinese.safetensors")


def extension_digest(folder: Path = RESOURCES) -> str:
    """SHA-256 of both files, one after the other."""
    import hashlib

    digest = hashlib.sha256((folder / "chinese.txt").read_bytes())
    digest.update((folder / "chinese.safetensors").read_bytes())
    return digest.hexdigest()


def extended_model(base: Path, *, weights_sha256: str | None = None) -> tuple[Path, str | None]:
    """The folder of a model with the extension, made in the cache once, and the digest its weights had then.

    Args:
        base: Folder of all-MiniLM-L6-v2.
        weights_sha256: What its weights' digest must be, where it is known.

    Raises:
        ChecksumMismatch: The base or the extension is not what was published.
        EncoderError: The base has files of another kind.
    """
    made = cache_root() / "models" / f"all-MiniLM-L6-v2-zh-{EXTENSION_SHA256[:12]}"
    if not (made / "modules.json").is_file():
        if not writable(made.parent):
            return _for_this_process(base, weights_sha256)
        _make(base, weights_sha256, made)
    found = read_json(made / _ORIGIN).get("weights_sha256")
    return made, found if isinstance(found, str) else None


def _make(base: Path, weights_sha256: str | None, made: Path) -> str:
    """Make the model and return the digest of its weights."""
    from likewise.embedder.growth.directory import grow_directory

    if weights_sha256 is not None and sha256_of(base / "model.safetensors") != weights_sha256:
        raise ChecksumMismatch(
            f"expected weights with SHA-256 {weights_sha256[:16]}... in {base}, found others",
            remedy="install or download the model again: its file was damaged or replaced",
        )
    extension = read_extension()
    # Beside its final place and renamed when complete: no other process sees half a model.
    making = Path(tempfile.mkdtemp(dir=made.parent, prefix="."))
    try:
        grow_directory(base, making / "model", extension.tokens, extension.expanded())
        digest = sha256_of(making / "model" / "model.safetensors")
        write_json(making / "model" / _ORIGIN, {"weights_sha256": digest})
        try:
            (making / "model").rename(made)
        except OSError:
            if not (made / "modules.json").is_file():  # else another process was faster
                raise
        return digest
    finally:
        shutil.rmtree(making, ignore_errors=True)


@cache
def _for_this_process(base: Path, weights_sha256: str | None) -> tuple[Path, str]:
    """The model in a temporary folder, where the cache cannot be written to."""
    import atexit

    folder = Path(tempfile.mkdtemp(prefix="likewise-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / "model", _make(base, weights_sha256, folder / "model")
