"""Files to sync, an encoder that remembers what it did, and what an index holds afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from likewise.embedder.hash_encoder import HashEncoder
from likewise.embedder.protocol import Embeddings, Role
from likewise.index.index import Index
from likewise.index.report import SyncReport

LONG_AGO = 1_600_000_000


class RecordingEncoder(HashEncoder):
    """Remembers what it embedded, and can be told to fail at some call."""

    def __init__(self, dimension: int = 64, max_tokens: int = 64) -> None:
        super().__init__(dimension, max_tokens)
        self.texts: list[str] = []
        self.calls = 0
        self.before_call: Callable[[int], None] = lambda call: None

    def embed(self, texts: Sequence[str], *, role: Role) -> Embeddings:
        self.before_call(self.calls)
        self.calls += 1
        assert role == "passage"
        self.texts += texts
        return super().embed(texts, role=role)


def write(folder: Path, files: Mapping[str, str | bytes], *, when: int = LONG_AGO) -> Path:
    """Files whose times are long past, so that an unchanged time means an unchanged file."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        os.utime(path, (when, when))
    return folder


def sync(folder: Path, encoder: HashEncoder | None = None, **options: object) -> SyncReport:
    sources = options.pop("sources", [folder])
    with Index.open(folder / ".likewise", encoder=encoder or RecordingEncoder()) as index:
        return index.sync(sources, **options)  # type: ignore[arg-type]  # options of any type


def texts(folder: Path) -> dict[str, list[str]]:
    """What the index holds: the passages of each document."""
    with Index.open(folder / ".likewise") as index, index.view() as view:
        return {
            row.key: [stored.passage.text for stored in view.document_passages(row.key)]
            for row in view.documents()
        }


def ids(folder: Path, key: str) -> list[int]:
    with Index.open(folder / ".likewise") as index, index.view() as view:
        return [stored.id for stored in view.document_passages(key)]


def paragraphs(count: int, stem: str) -> str:
    """Paragraphs that become passages of their own with the encoder's 64 tokens."""
    return "\n\n".join(" ".join(f"{stem}{i}x{j}" for j in range(48)) + "." for i in range(count))


def numbers(report: SyncReport) -> tuple[int, int, int, int, int]:
    return report.added, report.updated, report.renamed, report.deleted, report.unchanged
