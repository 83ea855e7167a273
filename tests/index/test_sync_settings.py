"""Another encoder, and other ways to cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import EncoderMismatch, UsageError
from likewise.index.index import Index
from likewise.index.report import SyncEvent, SyncInterrupted
from likewise.index.settings import ChunkSettings

from .syncing import RecordingEncoder, paragraphs, sync, texts, write


def test_another_encoder_is_refused_with_the_remedy(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "A."})
    sync(tmp_path, HashEncoder(64))
    for encoder in (HashEncoder(32), "hash:32"):
        with (
            Index.open(tmp_path / ".likewise", encoder=encoder) as index,
            pytest.raises(EncoderMismatch, match="made with the encoder hash, not with hash:32") as raised,
        ):
            index.sync()
        assert "likewise index --encoder hash:32 --reembed" in str(raised.value)


def test_reembedding_continues_and_switches_at_once(tmp_path: Path) -> None:
    write(tmp_path, {f"{i:03}.txt": paragraphs(10, f"d{i}") for i in range(60)})
    old, new = HashEncoder(64, 64), RecordingEncoder(32, 64)
    sync(tmp_path, old)

    def stop(call: int) -> None:
        if call == 1:
            raise KeyboardInterrupt

    new.before_call = stop
    with pytest.raises(SyncInterrupted) as raised:
        sync(tmp_path, new, reembed=True)
    assert raised.value.report.reembedded == 256
    with Index.open(tmp_path / ".likewise") as index:
        assert index.fingerprint == old.fingerprint
        with index.view() as view:
            assert view.dense(old.encode_queries(["d7x7"])[0], 3).ids.shape == (3,)
    again = RecordingEncoder(32, 64)
    events: list[SyncEvent] = []
    report = sync(tmp_path, again, reembed=True, progress=events.append)
    assert len(again.texts) == 600 - 256, "what was embedded before the interruption is kept"
    assert (report.unchanged, report.reembedded, report.published) == (60, 344, True)
    assert next(event.phase for event in events) == "reembed"
    with Index.open(tmp_path / ".likewise") as index, index.view() as view:
        assert index.fingerprint == new.fingerprint
        hits = view.dense(HashEncoder(32, 64).encode_queries([paragraphs(1, "d7")])[0], 1)
        assert view.passages(hits.ids)[int(hits.ids[0])].key == "007.txt"


def test_reembedding_gives_the_vectors_that_a_fresh_index_has(tmp_path: Path) -> None:
    files = {
        "a.md": f"# {'long heading ' * 30}\n\n## Keys\n\n{paragraphs(3, 'a')}",
        "b.txt": paragraphs(4, "b"),
    }
    write(tmp_path / "old", files)
    write(tmp_path / "new", files)
    sync(tmp_path / "old", HashEncoder(64, 64))
    sync(tmp_path / "old", HashEncoder(32, 64), reembed=True)
    sync(tmp_path / "new", HashEncoder(32, 64))
    vectors = []
    for folder in ("old", "new"):
        with Index.open(tmp_path / folder / ".likewise") as index, index.view() as view:
            passages = [p for key in files for p in view.document_passages(key)]
            vectors.append(view.vectors([p.id for p in passages]).tolist())
    assert vectors[0] == vectors[1]


def test_passages_too_long_for_the_new_encoder_are_cut_again(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": paragraphs(6, "a")})
    sync(tmp_path, HashEncoder(64, 128))
    small = RecordingEncoder(32, 32)
    report = sync(tmp_path, small, reembed=True)
    assert (report.updated, report.truncated) == (1, 0)
    with Index.open(tmp_path / ".likewise", encoder=small) as index, index.view() as view:
        counts = [len(spans) for spans in small.token_spans(texts(tmp_path)["a.txt"])]
        assert view.fingerprint == small.fingerprint
    assert max(counts) <= 32
    assert sync(tmp_path, small).unchanged == 1


def test_other_chunk_settings_cut_again_and_are_kept(tmp_path: Path) -> None:
    write(tmp_path, {"one/a.txt": paragraphs(4, "a"), "two/b.txt": paragraphs(4, "b")})
    sync(tmp_path, sources=[tmp_path / "one", tmp_path / "two"])
    before = texts(tmp_path)
    report = sync(tmp_path, sources=[tmp_path / "one"], chunking=ChunkSettings(target_tokens=20))
    assert report.updated == 2, "a cut that changes holds for the whole index"
    assert all(len(after) > len(before[key]) for key, after in texts(tmp_path).items())
    with Index.open(tmp_path / ".likewise") as index:
        assert index.settings == ChunkSettings(target_tokens=20)
    assert sync(tmp_path, sources=None).unchanged == 2
    report = sync(tmp_path, sources=None, chunking=ChunkSettings())
    assert texts(tmp_path) == before


def test_a_target_that_does_not_fit_is_refused_and_not_kept(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "A."})
    with pytest.raises(UsageError, match="takes 64"):
        sync(tmp_path, chunking=ChunkSettings(target_tokens=100))
    assert sync(tmp_path).added == 1
