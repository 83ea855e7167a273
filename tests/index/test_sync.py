"""The ordinary course of a sync: what is new, changed, moved or gone, and what is reported of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from likewise.index.catalogue import Catalogue
from likewise.index.index import Index
from likewise.index.records import DocumentState
from likewise.index.report import SyncEvent
from likewise.index.settings import SyncSettings

from .syncing import LONG_AGO, RecordingEncoder, ids, numbers, paragraphs, sync, texts, write


def test_a_first_sync_indexes_every_file(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "# Keys\n\nRotate them.", "docs/b.txt": "金鑰要輪換。", "docs/c.txt": ""})
    report = sync(tmp_path)
    assert numbers(report) == (3, 0, 0, 0, 0)
    assert (report.found, report.passages, report.embedded, report.reused, report.truncated) == (
        3,
        2,
        2,
        0,
        0,
    )
    assert [(item.key, item.state) for item in report.skipped] == [("docs/c.txt", DocumentState.EMPTY)]
    assert report.skipped_by_state() == {DocumentState.EMPTY: 1}
    assert texts(tmp_path) == {
        "a.md": ["# Keys\n\nRotate them."],
        "docs/b.txt": ["金鑰要輪換。"],
        "docs/c.txt": [],
    }
    assert (tmp_path / ".likewise" / ".gitignore").read_text() == "*\n"


def test_nothing_changed_loads_no_encoder_and_starts_no_process(tmp_path: Path) -> None:
    write(tmp_path, {f"{i}.md": f"Text number {i}." for i in range(5)})
    with Index.open(tmp_path / ".likewise", encoder="hash") as index:
        index.sync([tmp_path])
    program = (
        "import sys; from likewise.index.index import Index\n"
        f"report = Index.open({str(tmp_path / '.likewise')!r}).sync()\n"
        "assert (report.unchanged, report.changed) == (5, 0), report\n"
        "heavy = {'torch', 'faiss', 'openvino', 'transformers', 'tokenizers', 'sentence_transformers',\n"
        "         'multiprocessing', 'likewise.embedder.hash_encoder', 'likewise.embedder.encoder',\n"
        "         'likewise.index.readers.isolate', 'likewise.index.readers.process'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_of_a_changed_file_only_the_changed_passage_is_embedded(tmp_path: Path) -> None:
    text = paragraphs(6, "old")
    write(tmp_path, {"a.txt": text, "b.txt": paragraphs(3, "other")})
    first = sync(tmp_path)
    assert first.embedded == 9
    before = ids(tmp_path, "a.txt")
    write(tmp_path, {"a.txt": text.replace("old3x5", "new3x5")}, when=LONG_AGO + 10)
    encoder = RecordingEncoder()
    report = sync(tmp_path, encoder)
    assert numbers(report) == (0, 1, 0, 0, 1)
    assert (report.passages, report.embedded, report.reused) == (6, 1, 5)
    assert len(encoder.texts) == 1 and "new3x5" in encoder.texts[0]
    after = ids(tmp_path, "a.txt")
    assert [old == new for old, new in zip(before, after, strict=True)] == [
        True,
        True,
        True,
        False,
        True,
        True,
    ]
    assert after[3] > max(before)


def test_a_touched_file_is_hashed_and_not_read(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "Same."})
    sync(tmp_path)
    os.utime(tmp_path / "a.txt", (LONG_AGO + 99, LONG_AGO + 99))
    encoder = RecordingEncoder()
    report = sync(tmp_path, encoder)
    assert (numbers(report), encoder.calls) == ((0, 0, 0, 0, 1), 0)
    with Catalogue.open(tmp_path / ".likewise", mode="read") as catalogue:
        [row] = catalogue.documents()
    assert row.mtime_ns == (LONG_AGO + 99) * 10**9


def test_a_change_that_keeps_size_and_time_right_after_reading_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one")
    status = path.stat()
    sync(tmp_path)
    path.write_text("two")
    os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))
    assert numbers(sync(tmp_path)) == (0, 1, 0, 0, 0)
    assert texts(tmp_path) == {"a.txt": ["two"]}


def test_renames_keep_ids_and_cost_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": paragraphs(3, "a"), "b.txt": "B."})
    sync(tmp_path)
    before = ids(tmp_path, "a.txt")
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.txt").rename(tmp_path / "deep" / "new.txt")
    encoder = RecordingEncoder()
    report = sync(tmp_path, encoder)
    assert (numbers(report), encoder.calls) == ((0, 0, 1, 0, 1), 0)
    assert ids(tmp_path, "deep/new.txt") == before
    assert set(texts(tmp_path)) == {"deep/new.txt", "b.txt"}


def test_a_rename_to_another_suffix_is_read_again_but_not_embedded(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "Plain words only."})
    sync(tmp_path)
    (tmp_path / "a.txt").rename(tmp_path / "a.md")
    encoder = RecordingEncoder()
    report = sync(tmp_path, encoder)
    assert numbers(report) == (1, 0, 0, 1, 0)
    assert (report.embedded, report.reused, encoder.calls) == (0, 1, 0)


def test_names_may_be_exchanged(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": paragraphs(2, "a"), "b.txt": paragraphs(3, "b")})
    sync(tmp_path)
    was = texts(tmp_path)
    for old, new in (("a.txt", "c"), ("b.txt", "a.txt"), ("c", "b.txt")):
        (tmp_path / old).rename(tmp_path / new)
    encoder = RecordingEncoder()
    assert numbers(sync(tmp_path, encoder)) == (0, 2, 0, 0, 0)
    assert encoder.calls == 0
    assert texts(tmp_path) == {"a.txt": was["b.txt"], "b.txt": was["a.txt"]}


def test_copies_are_embedded_once(tmp_path: Path) -> None:
    write(tmp_path, {f"{i}.txt": paragraphs(3, "same") for i in range(4)})
    encoder = RecordingEncoder()
    report = sync(tmp_path, encoder)
    assert (report.passages, report.embedded, report.reused, len(encoder.texts)) == (12, 3, 9, 3)


def test_deleted_and_emptied_files_do_not_answer_any_more(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "Alpha.", "b.txt": "Beta.", "c.txt": "Gamma."})
    sync(tmp_path)
    (tmp_path / "a.txt").unlink()
    write(tmp_path, {"b.txt": ""}, when=LONG_AGO + 5)
    report = sync(tmp_path)
    assert numbers(report) == (0, 1, 0, 1, 1)
    assert texts(tmp_path) == {"b.txt": [], "c.txt": ["Gamma."]}


def test_a_large_document_is_embedded_in_groups_and_whole_in_the_end(tmp_path: Path) -> None:
    text = paragraphs(90, "w")
    write(tmp_path, {"a.txt": text})
    encoder = RecordingEncoder()
    report = sync(tmp_path, encoder, settings=SyncSettings(group_passages=40))
    assert (report.passages, report.embedded, report.reused, encoder.calls) == (90, 90, 0, 3)
    assert "\n\n".join(texts(tmp_path)["a.txt"]) == text
    changed = text.replace("w7x7 ", "new ")
    write(tmp_path, {"a.txt": changed}, when=LONG_AGO + 5)
    report = sync(tmp_path, settings=SyncSettings(group_passages=1))
    assert (report.embedded, report.reused) == (1, 89)


def test_progress_tells_phases_in_order(tmp_path: Path) -> None:
    write(tmp_path, {f"{i}.txt": paragraphs(2, f"d{i}") for i in range(3)})
    events: list[SyncEvent] = []
    sync(tmp_path, progress=events.append)
    phases = list(dict.fromkeys(event.phase for event in events))
    assert phases == ["scan", "compare", "index", "publish"]
    last = [event for event in events if event.phase == "index"][-1]
    assert (last.done, last.total, last.embedded) == (3, 3, 6)
    assert {event.path for event in events if event.phase == "index"} >= {"0.txt", "1.txt", "2.txt"}


def test_lossy_decoding_and_remarks_are_reported(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": b"\xef\xbb\xbfGood start, then \xff\xfe broken bytes and more words."})
    report = sync(tmp_path)
    with Index.open(tmp_path / ".likewise") as index:
        status = index.status()
    assert report.lossy == status.lossy
    assert report.lossy and report.lossy[0][0] == "a.txt" and report.lossy[0][1] >= 1
