"""Fixtures that several parts share."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from likewise.embedder.hash_encoder import HashEncoder
from likewise.index.catalogue import Catalogue
from likewise.index.records import Passage, Span
from likewise.index.rows import PassageRow, WriteDocument


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """Let child processes be interrupted even where a shell started the tests in the background.

    Such a shell makes its children ignore Ctrl-C, and children of children inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# No test measures time: on a busy machine any single example may be slow.
settings.register_profile("likewise", deadline=None)
settings.load_profile("likewise")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of public data sets; tests that need it are skipped where it is absent."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LIKEWISE_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no data sets at {folder}; set LIKEWISE_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def make_document() -> Callable[..., WriteDocument]:
    """Documents for a catalogue: `make_document(key, texts, **fields)`, embedded with the hash encoder."""
    encoder = HashEncoder()

    def make(key: str, texts: Sequence[str], **fields: Any) -> WriteDocument:
        headings = fields.pop("headings", ())
        vectors = encoder.encode_passages(list(texts)) if texts else []
        rows, start = [], 0
        for ordinal, text in enumerate(texts):
            passage = Passage(
                ordinal, text, Span(start, start + len(text)), (ordinal + 1,) * 2, None, headings
            )
            rows.append(PassageRow(passage, sha256(text.encode()).digest(), vectors[ordinal]))
            start += len(text) + 1
        values = {"path_bytes": os.fsencode(key), "size": start, "mtime_ns": 1, "content_hash": "0" * 64}
        return WriteDocument(key, **(values | fields), passages=rows)

    return make


@pytest.fixture
def empty_index(tmp_path: Path) -> Path:
    """An index folder of the hash encoder without documents."""
    encoder = HashEncoder()
    folder = tmp_path / ".likewise"
    with Catalogue.open(folder, mode="create") as catalogue:
        setting = {"name": encoder.name, "fingerprint": encoder.fingerprint, "dimension": encoder.dimension}
        catalogue.set_meta({"encoder": setting})
    return folder


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither use nor fill the user's cache, and subprocesses inherit that."""
    with pytest.MonkeyPatch.context() as patch:
        if "LIKEWISE_CACHE" not in os.environ:
            patch.setenv("LIKEWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
