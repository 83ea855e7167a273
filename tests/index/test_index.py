from __future__ import annotations

import os
from pathlib import Path

import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import EncoderMismatch, EncoderNotFound, IndexFolderError, IndexLocked, IndexNotFound
from likewise.index.index import Index
from likewise.index.lock import WriterLock
from likewise.index.records import DocumentState, Filter
from likewise.index.settings import ChunkSettings
from likewise.index.sources import Source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an index of three documents."""
    (tmp_path / "keys.md").write_text("# Keys\n\nRotate the signing keys.", encoding="utf-8")
    (tmp_path / "金鑰.md").write_text(
        "# 金鑰\n\n金鑰每九十天要輪換一次，沒有人把它寫在別處。", encoding="utf-8"
    )
    (tmp_path / "scan.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with Index.open(tmp_path / ".likewise", encoder="hash") as index:
        index.sync([tmp_path])
    return tmp_path


def test_an_index_that_does_not_exist_yet(tmp_path: Path) -> None:
    with Index.open(tmp_path / ".likewise") as index:
        assert (index.fingerprint, index.encoder_name, index.sources) == ("", "", ())
        assert index.settings == ChunkSettings()
        for use in (index.view, index.status, index.sync):
            with pytest.raises(IndexNotFound, match="no index"):
                use()
    assert not (tmp_path / ".likewise").exists()


def test_find_looks_upwards(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = folder / "a" / "b"
    deep.mkdir(parents=True)
    (deep / ".likewise").mkdir()  # not an index: passed over
    assert Index.find(deep) == folder / ".likewise"
    monkeypatch.chdir(deep)
    assert Index.find() == folder / ".likewise"
    with pytest.raises(IndexNotFound, match="or a folder above it"):
        Index.find(folder.parent)


def test_it_answers_with_the_encoder_it_was_made_with(folder: Path) -> None:
    with Index.open(folder / ".likewise") as index:
        assert index.base == folder
        assert index.encoder_name == "hash"
        assert index.encoder.fingerprint == index.fingerprint == HashEncoder().fingerprint
        assert index.encoder is index.encoder
        with index.view() as view:
            ranking = view.dense(index.encoder.encode_queries(["rotate signing keys"])[0], 1)
            [hit] = view.passages(ranking.ids).values()
    assert (hit.key, hit.passage.headings) == ("keys.md", ("Keys",))


def test_another_encoder_is_refused_for_searching_too(folder: Path) -> None:
    with Index.open(folder / ".likewise", encoder="hash:32") as index:
        with pytest.raises(EncoderMismatch, match="made with the encoder hash, not with hash:32"):
            _ = index.encoder
        with index.view() as view:
            assert view.passage_count == 2, "words can still be searched"


def test_a_model_that_changed_under_its_name_is_said_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HashEncoder, "fingerprint", "another")
    with (
        Index.open(folder / ".likewise") as index,
        pytest.raises(EncoderMismatch, match="not the same as when the index"),
    ):
        _ = index.encoder


def test_an_unknown_encoder(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A.", encoding="utf-8")
    with Index.open(tmp_path / ".likewise", encoder="hash:nonsense") as index, pytest.raises(EncoderNotFound):
        index.sync([tmp_path])


def test_an_open_index_follows_a_switch_by_another_process(folder: Path) -> None:
    with Index.open(folder / ".likewise") as reading, Index.open(folder / ".likewise") as writing:
        before = reading.encoder.fingerprint
        writing.sync(encoder="hash:32", reembed=True)
        assert reading.encoder.fingerprint == HashEncoder(32).fingerprint != before
        with reading.view() as view:
            assert len(view.dense(reading.encoder.encode_queries(["keys"])[0], 5).ids) == 2


def test_status(folder: Path) -> None:
    with Index.open(folder / ".likewise") as index:
        status = index.status()
    assert status.encoder_name == "hash" and status.dimension == 64
    assert status.counts.states == {DocumentState.OK: 2, DocumentState.UNSUPPORTED: 1}
    assert [(item.key, item.state) for item in status.skipped] == [("scan.png", DocumentState.UNSUPPORTED)]
    assert status.sources == (Source("."),)
    assert sum(status.languages.values()) == 2 and "zh" in status.languages
    assert status.bytes > 10_000
    assert status.synced_at is not None
    assert status.writer is None


def test_status_names_the_writer(folder: Path) -> None:
    with Index.open(folder / ".likewise") as index, WriterLock(folder / ".likewise"):
        writer = index.status().writer
        assert writer is not None and writer.pid == os.getpid()
        with pytest.raises(IndexLocked, match=f"process {os.getpid()}"):
            index.sync()


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("A.", encoding="utf-8")
    with Index.open(tmp_path / "docs") as index, pytest.raises(IndexFolderError, match="is not an index"):
        index.sync([tmp_path / "docs"])
    assert [path.name for path in (tmp_path / "docs").iterdir()] == ["a.txt"]


def test_the_folder_and_its_index_can_move_together(folder: Path) -> None:
    moved = folder.rename(folder.with_name("moved"))
    with Index.open(moved / ".likewise") as index:
        report = index.sync()
    assert (report.unchanged, report.changed) == (3, 0)


def test_filters_see_what_the_readers_found(folder: Path) -> None:
    with Index.open(folder / ".likewise") as index, index.view() as view:
        ids = view.select(Filter(languages=("zh",)))
        assert ids is not None
        assert {stored.key for stored in view.passages(ids).values()} == {"金鑰.md"}


def test_views_of_one_moment(folder: Path) -> None:
    with Index.open(folder / ".likewise") as index, index.view() as before:
        assert before.passage_count == 2
        (folder / "new.txt").write_text("New.", encoding="utf-8")
        index.sync()
        assert before.passage_count == 2
        with index.view() as after:
            assert after.passage_count == 3


def test_it_can_be_used_after_closing(folder: Path) -> None:
    index = Index.open(folder / ".likewise")
    for _ in range(2):
        with index.view() as view:
            assert view.passage_count == 2
        index.close()
