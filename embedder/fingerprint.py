"""Which files and settings decide a vector, and the digest of them all.

The fingerprint identifies vectors: equal fingerprints, equal vectors. So it must leave out what does not
change a vector (names, paths, the runtime) and include all that does. A digest of 90 MB takes longer than a
search, so digests are remembered by path, size and time of modification.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from likewise.embedder.cache import cache_root, read_json, write_json
from likewise.embedder.spec import ModelSpec, read_config
from likewise.embedder.static.files import truncation_side
from likewise.errors import ChecksumMismatch, EncoderError

# Raise when the same files would give other vectors than before.
_VERSION = 1

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
# Where a model was saved from and by which release, but not what it computes.
_IRRELEVANT_KEYS = {
    "_name_or_path",
    "is_local",
    "local_files_only",
    "name_or_path",
    "padding",
    "tokenizer_file",
    "transformers_version",
    "truncation",
    "use_cache",
}
_DOCUMENTS = {".md", ".png", ".jpg"}
_REMEMBERED_DIGESTS = 256


def fingerprint(spec: ModelSpec, *, weights_sha256: str | None = None) -> str:
    """SHA-256 over everything that changes a vector of this model, hexadecimal.

    Args:
        spec: The model.
        weights_sha256: What the digest of `model.safetensors` must be, where its publisher says so.

    Raises:
        EncoderError: A file is missing or cannot be read.
        ChecksumMismatch: The weights are not the published ones.
    """
    digests = file_digests(spec)
    if weights_sha256 is not None and digests.get("model.safetensors") != weights_sha256:
        raise ChecksumMismatch(
            f"expected weights of {spec.name} with SHA-256 {weights_sha256[:16]}..., found "
            f"{digests.get('model.safetensors', 'none')[:16]}... in {spec.transformer}",
            remedy="install or download the model again: its file was damaged or replaced",
        )
    parts: dict[str, Any] = {
        "version": _VERSION,
        "pooling": spec.pooling,
        "include_prompt": spec.include_prompt,
        "max_tokens": spec.max_tokens,
        "lower_case": spec.lower_case,
        "prompts": [spec.prompts.query, spec.prompts.passage],
        "truncate_dimension": spec.truncate_dimension,
        "files": digests,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def file_digests(spec: ModelSpec) -> dict[str, str]:
    """Digest of every file that decides a vector, by its name and part of the model.

    Raises:
        EncoderError: A file is missing or cannot be read.
    """
    digests = _Digests(spec.directory)
    found: dict[str, str] = {}
    if spec.foreign:
        # What such parts read is their own affair: every file counts but documentation.
        for path in sorted(spec.directory.rglob("*")):
            if path.is_file() and path.suffix.lower() not in _DOCUMENTS:
                found[path.relative_to(spec.directory).as_posix()] = digests.of(path)
    else:
        for path in weight_files(spec.transformer):
            found[path.name] = digests.of(path)
        if spec.static:  # no settings at all, but a tokenizer that itself decides what is cut off
            found["truncation"] = truncation_side(spec.transformer)
        else:
            found["config.json"] = digests.of(spec.transformer / "config.json")
        for name in _TOKENIZER_FILES:
            if (spec.transformer / name).is_file():
                found[name] = digests.of(spec.transformer / name)
        for position, head in enumerate(spec.heads):
            if head.kind == "dense":
                files = [head.directory / "config.json", *weight_files(head.directory)]
                found[f"head {position}"] = " ".join(digests.of(path) for path in files)
            else:
                found[f"head {position}"] = head.kind
    digests.save()
    return found


def weight_files(directory: Path) -> list[Path]:
    """The files that hold the weights of a checkpoint, in the order of preference that transformers has.

    Raises:
        EncoderError: There are none, or one that an index lists is missing.
    """
    for name in ("model.safetensors", "pytorch_model.bin"):
        if (directory / name).is_file():
            return [directory / name]
        index = read_config(directory / f"{name}.index.json")
        if index:
            shards = [directory / shard for shard in sorted(set(index.get("weight_map", {}).values()))]
            if missing := [shard.name for shard in shards if not shard.is_file()]:
                raise EncoderError(
                    f"{directory / name}.index.json lists {missing[0]}, which is missing",
                    remedy="save or download the model again: it is not complete",
                )
            return shards
    raise EncoderError(
        f"expected model.safetensors or pytorch_model.bin in {directory}, found {_listing(directory)}",
        remedy="save or download the model again: it is not complete",
    )


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _listing(directory: Path) -> str:
    names = sorted(path.name for path in directory.iterdir()) if directory.is_dir() else []
    return ", ".join(names[:6]) + (" ..." if len(names) > 6 else "") if names else "nothing"


def _canonical_digest(path: Path) -> str:
    """Digest of what a JSON file says, whatever its layout."""
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        return sha256_of(path)
    if isinstance(content, dict):
        content = {key: value for key, value in content.items() if key not in _IRRELEVANT_KEYS}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class _Digests:
    """Digests of one model's files, remembered between runs as long as size and time stay the same."""

    def __init__(self, directory: Path) -> None:
        key = hashlib.sha256(str(directory.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._file = cache_root() / "digests" / f"{key}.json"
        self._known = read_json(self._file)
        self._changed = False

    def of(self, path: Path) -> str:
        try:
            status = path.stat()
            state = [status.st_size, status.st_mtime_ns]
            known = self._known.get(str(path))
            if isinstance(known, list) and known[:-1] == state and isinstance(known[-1], str):
                return known[-1]
            digest = _canonical_digest(path) if path.suffix == ".json" else sha256_of(path)
        except OSError as error:
            raise EncoderError(
                f"cannot read {path}: {error.strerror}", remedy="save or download the model again"
            ) from error
        self._known[str(path)] = [*state, digest]
        self._changed = True
        return digest

    def save(self) -> None:
        if not self._changed:
            return
        recent = dict(list(self._known.items())[-_REMEMBERED_DIGESTS:])
        try:
            write_json(self._file, recent)
        except OSError:
            return  # a cache that cannot be written costs time, nothing else
