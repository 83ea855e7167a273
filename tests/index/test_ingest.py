from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.embedder.protocol import Embeddings, Role
from likewise.index.catalogue import Catalogue
from likewise.index.ingest import Ingest, text_digest
from likewise.index.records import Extraction
from likewise.index.report import Tally
from likewise.index.rows import Change, WriteDocument
from likewise.index.settings import ChunkSettings, SyncSettings
from likewise.index.stored import encoder_json


class SlowEncoder(HashEncoder):
    """Embeds ten passages a second, on a clock of its own."""

    def __init__(self) -> None:
        super().__init__(16, 64)
        self.now = 0.0
        self.sizes: list[int] = []

    def embed(self, texts: Sequence[str], *, role: Role) -> Embeddings:
        self.now += len(texts) / 10
        self.sizes.append(len(texts))
        return super().embed(texts, role=role)


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    with Catalogue.open(tmp_path / ".likewise", mode="create") as opened:
        encoder = SlowEncoder()
        opened.set_meta({"encoder": encoder_json(encoder, encoder.name)})
        yield opened


def header(key: str) -> WriteDocument:
    return WriteDocument(key, key.encode(), 1, 1, "hash", reader="t/1")


def extraction(count: int, stem: str) -> Extraction:
    """A document of as many passages."""
    text = "\n\n".join(" ".join(f"{stem}{i}x{j}" for j in range(48)) for i in range(count))
    return Extraction(text, reader="t/1")


def ingest(catalogue: Catalogue, encoder: SlowEncoder, settings: SyncSettings, tally: Tally) -> Ingest:
    return Ingest(
        catalogue,
        lambda: encoder,
        chunking=ChunkSettings(),
        settings=settings,
        tally=tally,
        clock=lambda: encoder.now,
    )


def test_groups_follow_the_speed_of_the_encoder(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten passages a second and six seconds between commits make groups of sixty."""
    encoder, tally = SlowEncoder(), Tally()
    groups: list[int] = []
    apply = catalogue.apply

    def commit(changes: Sequence[Change]) -> None:
        groups.append(sum(encoder.sizes) - sum(groups))
        apply(changes)

    monkeypatch.setattr(catalogue, "apply", commit)
    work = ingest(catalogue, encoder, SyncSettings(commit_seconds=6), tally)
    work.add(header("a"), extraction(400, "w"), is_new=True)
    work.flush()
    assert groups == [128, 60, 60, 60, 60, 32]
    # Once the speed is known, the encoder is called every two seconds: so often a person sees something move.
    assert encoder.sizes[0] == 64
    assert max(encoder.sizes[1:]) == 20
    assert (tally.added, tally.passages, tally.embedded) == (1, 400, 400)


def test_progress_tells_how_many_passages_there_are_to_embed(catalogue: Catalogue) -> None:
    encoder, tally = SlowEncoder(), Tally()
    seen: list[tuple[int, int]] = []
    work = Ingest(
        catalogue,
        lambda: encoder,
        chunking=ChunkSettings(),
        settings=SyncSettings(group_passages=1000),
        tally=tally,
        embedding=lambda: seen.append((work.embedded, work.to_embed)),
        clock=lambda: encoder.now,
    )
    work.add(header("a"), extraction(1100, "w"), is_new=True)
    assert seen[:2] == [(0, 512), (0, 1024)]  # while the document is cut
    work.flush()
    assert seen[-1] == (1100, 1100)
    assert all(embedded <= of == 1100 for embedded, of in seen[2:])
    assert seen == sorted(seen)


def test_small_documents_wait_for_each_other_but_not_for_long(catalogue: Catalogue) -> None:
    encoder, tally = SlowEncoder(), Tally()
    work = ingest(catalogue, encoder, SyncSettings(commit_seconds=6), tally)
    for number in range(3):
        work.add(header(f"{number}"), extraction(5, f"d{number}"), is_new=True)
        assert tally.added == 0
    encoder.now += 7
    work.add(header("late"), extraction(1, "late"), is_new=True)
    assert tally.added == 4
    assert encoder.sizes == [16]


def test_a_rewritten_document_keeps_the_vectors_of_its_later_part(catalogue: Catalogue) -> None:
    """Writing the first group of a long document must not throw away what the rest can use again."""
    encoder, tally = SlowEncoder(), Tally()
    work = ingest(catalogue, encoder, SyncSettings(group_passages=10), tally)
    old = extraction(100, "w")
    work.add(header("a"), old, is_new=True)
    work.flush()
    encoder.sizes.clear()
    head, tail = extraction(30, "n").text, old.text
    work.add(header("a"), Extraction(f"{head}\n\n{tail}", reader="t/1"), is_new=False)
    work.flush()
    assert sum(encoder.sizes) == 30
    assert (tally.updated, tally.passages, tally.embedded) == (1, 230, 130)


def test_digests_tell_texts_apart() -> None:
    assert text_digest("a") != text_digest("b")
    assert len(text_digest("\ud800")) == 32
