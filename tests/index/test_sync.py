from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.embedder.protocol import Embeddings, Role
from likewise.errors import EncoderMismatch, IndexFolderError, SourceError, UsageError
from likewise.index.catalogue import Catalogue
from likewise.index.index import Index
from likewise.index.records import DocumentState
from likewise.index.report import SyncEvent, SyncInterrupted, SyncReport
from likewise.index.rows import Change
from likewise.index.settings import ChunkSettings, SyncSettings

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
        return index.sync(sources, **options)  # type: ignore[arg-type]


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


# -- the ordinary course ---------------------------------------------------------------------------------


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


# -- sources ---------------------------------------------------------------------------------------------


def test_only_documents_under_the_given_sources_are_deleted(tmp_path: Path) -> None:
    write(tmp_path, {"one/a.txt": "A.", "two/b.txt": "B.", "two/sub/c.txt": "C."})
    sync(tmp_path, sources=[tmp_path / "one", tmp_path / "two"])
    for name in ("one/a.txt", "two/b.txt", "two/sub/c.txt"):
        (tmp_path / name).unlink()
    assert sync(tmp_path, sources=[tmp_path / "two" / "sub"]).deleted == 1
    assert set(texts(tmp_path)) == {"one/a.txt", "two/b.txt"}
    assert sync(tmp_path, sources=[tmp_path / "one"]).deleted == 1
    assert set(texts(tmp_path)) == {"two/b.txt"}
    assert sync(tmp_path, sources=None).deleted == 1
    with Index.open(tmp_path / ".likewise") as index:
        assert [source.path for source in index.sources] == ["one", "two"]


def test_patterns_are_remembered_with_their_source(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "A.", "b.txt": "B.", "drafts/c.md": "C."})
    sync(tmp_path, include=["*.md"], exclude=["drafts/"])
    assert set(texts(tmp_path)) == {"a.md"}
    write(tmp_path, {"d.md": "D.", "e.txt": "E."})
    assert sync(tmp_path, sources=None).added == 1
    assert sync(tmp_path, include=["*.txt"]).deleted == 2
    assert set(texts(tmp_path)) == {"b.txt", "e.txt"}


def test_a_source_inside_another_keeps_its_own_patterns(tmp_path: Path) -> None:
    write(tmp_path, {"docs/a.md": "A.", "docs/raw/b.txt": "B.", "docs/raw/c.md": "C."})
    sync(tmp_path, sources=[tmp_path / "docs"], include=["*.md"])
    sync(tmp_path, sources=[tmp_path / "docs" / "raw"], include=["*.txt"])
    assert set(texts(tmp_path)) == {"docs/a.md", "docs/raw/b.txt"} | {"docs/raw/c.md"} - {"docs/raw/c.md"}
    sync(tmp_path, sources=[tmp_path / "docs"])
    assert set(texts(tmp_path)) == {"docs/a.md", "docs/raw/b.txt", "docs/raw/c.md"}


def test_a_missing_source_is_an_error_that_deletes_nothing(tmp_path: Path) -> None:
    base = tmp_path / "base"
    write(base, {"own.txt": "Own."})
    write(tmp_path / "disk", {"a.txt": "A."})
    sync(base, sources=[base, tmp_path / "disk"])
    (tmp_path / "disk").rename(tmp_path / "unmounted")
    (base / "own.txt").unlink()
    with pytest.raises(SourceError, match=r"disk does not exist.*nothing was changed") as raised:
        sync(base, sources=None)
    assert "--forget" in str(raised.value)
    assert len(texts(base)) == 2
    with Index.open(base / ".likewise") as index:
        assert index.forget(tmp_path / "disk") == 1
        with pytest.raises(UsageError, match="is not a source"):
            index.forget(tmp_path / "disk")
        assert index.sync().deleted == 1
    assert texts(base) == {}


def test_a_mistyped_folder_does_not_become_an_index(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        sync(tmp_path / "typo")
    assert not (tmp_path / "typo").exists()


def test_patterns_without_a_source_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "A."})
    sync(tmp_path)
    with pytest.raises(UsageError, match="patterns belong to a source"):
        sync(tmp_path, sources=None, include=["*.md"])


def test_an_empty_folder_is_fine(tmp_path: Path) -> None:
    report = sync(tmp_path)
    assert (report.found, report.changed) == (0, 0)
    assert texts(tmp_path) == {}
    write(tmp_path, {"a.txt": "A."})
    assert sync(tmp_path).added == 1


def test_a_single_file_is_a_source_too(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "A.", "b.txt": "B."})
    sync(tmp_path, sources=[tmp_path / "a.txt"])
    assert set(texts(tmp_path)) == {"a.txt"}


# -- what goes wrong -------------------------------------------------------------------------------------


def test_every_file_ends_in_a_state(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "binary.txt": bytes(range(256)) * 40,
            "image.png": b"\x89PNG\r\n\x1a\n" + bytes(100),
            "latin.txt": "Größe und Länge über alles, schöne Grüße aus Köln.".encode("latin-1"),
            "broken.pdf": b"%PDF-1.4 nothing more",
            "good.md": "Fine.",
        },
    )
    report = sync(tmp_path)
    states = {item.key: item.state for item in report.skipped}
    assert states["image.png"] is DocumentState.UNSUPPORTED
    assert states["broken.pdf"] is DocumentState.FAILED
    assert "binary.txt" in states
    assert all(item.reason for item in report.skipped)
    assert report.found == 5 == len(texts(tmp_path))
    assert "Größe" in texts(tmp_path)["latin.txt"][0]
    again = sync(tmp_path)
    assert (again.unchanged, again.changed) == (5, 0)
    assert not any(item.known for item in report.skipped)
    known = tuple(replace(item, known=True) for item in report.skipped)
    assert again.skipped == known, "what is skipped is said every time"


def test_a_skipped_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    write(tmp_path, {"a.pdf": b"%PDF-1.4 nothing"})
    sync(tmp_path)
    write(tmp_path, {"a.pdf": b"plain text after all"}, when=LONG_AGO + 5)
    report = sync(tmp_path)
    assert (report.updated, len(report.skipped)) == (1, 0)


def test_a_new_reader_version_reads_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.txt": "A.", "b.png": b"\x89PNG\r\n\x1a\n"})
    sync(tmp_path)
    with Catalogue.open(tmp_path / ".likewise", mode="read") as catalogue:
        old = {row.reader for row in catalogue.documents()}
    monkeypatch.setattr("likewise.index.readers.registry.current_readers", lambda: frozenset({"text/99"}))
    report = sync(tmp_path)
    assert len(old) == 2
    # The text is read and found unchanged but for its reader, the image is still none we can read.
    assert (report.updated, report.unchanged, report.embedded) == (1, 1, 0)


def test_a_file_that_vanishes_before_it_is_read_is_gone(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "A.", "b.txt": "B."})
    sync(tmp_path)
    write(tmp_path, {"b.txt": "B changed.", "c.txt": "New."}, when=LONG_AGO + 5)

    def vanish(event: SyncEvent) -> None:
        if event.phase == "index" and event.done == 0:
            (tmp_path / "b.txt").unlink(missing_ok=True)
            (tmp_path / "c.txt").unlink(missing_ok=True)

    report = sync(tmp_path, progress=vanish)
    assert numbers(report) == (0, 0, 0, 1, 1)
    assert texts(tmp_path) == {"a.txt": ["A."]}


def test_a_folder_that_cannot_be_listed_keeps_its_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"a.txt": "A.", "locked/b.txt": "B."})
    sync(tmp_path)
    real = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    report = sync(tmp_path)
    assert report.deleted == 0
    assert report.left_out == (("locked/", "permission denied"),)
    assert set(texts(tmp_path)) == {"a.txt", "locked/b.txt"}
    with Index.open(tmp_path / ".likewise") as index:
        assert index.status().left_out == report.left_out
    monkeypatch.undo()
    assert sync(tmp_path).left_out == ()


def test_a_file_without_permission_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.txt": "A."})
    real = os.open

    def refuse(path: object, *arguments: int, **options: int) -> int:
        if str(path).endswith("a.txt"):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(os, "open", refuse)
    report = sync(tmp_path)
    assert [(item.state, item.reason) for item in report.skipped] == [
        (DocumentState.FAILED, "permission denied")
    ]
    assert (sync(tmp_path).unchanged, sync(tmp_path).changed) == (1, 0)
    monkeypatch.undo()
    assert numbers(sync(tmp_path)) == (0, 1, 0, 0, 0)
    assert texts(tmp_path) == {"a.txt": ["A."]}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither FIFOs nor such names")
def test_odd_names_and_odd_files(tmp_path: Path) -> None:
    write(tmp_path, {"new\nline.txt": "One.", "空白 檔名.txt": "Two.", "deep/" * 40 + "end.txt": "Three."})
    raw = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    with open(raw, "wb") as file:
        file.write(b"Four.")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    report = sync(tmp_path)
    assert report.added == 4
    assert {key for key, _ in report.left_out} == {"pipe.txt", "loop"}
    found = texts(tmp_path)
    assert found["new\nline.txt"] == ["One."]
    assert found["caf\\xe9.txt"] == ["Four."]
    with Catalogue.open(tmp_path / ".likewise", mode="read") as catalogue:
        paths = {row.key: row.path_bytes for row in catalogue.documents()}
    assert paths["caf\\xe9.txt"] == b"caf\xe9.txt"
    assert sync(tmp_path).changed == 0


def test_many_tiny_files(tmp_path: Path) -> None:
    write(tmp_path, {f"{i % 50}/{i}.txt": f"Tiny file number {i}." for i in range(2_000)})
    report = sync(tmp_path)
    assert (report.added, report.passages) == (2_000, 2_000)
    assert report.published
    again = sync(tmp_path)
    assert (again.unchanged, again.published) == (2_000, False)


def test_one_long_line(tmp_path: Path) -> None:
    write(tmp_path, {"log.txt": "event 42 happened, 事件發生。" * 40_000})
    report = sync(tmp_path, HashEncoder(16, 254))
    assert report.truncated == 0
    assert report.passages > 1_000


# -- interruption ----------------------------------------------------------------------------------------


def interrupt_at(call: int) -> RecordingEncoder:
    encoder = RecordingEncoder()

    def stop(number: int) -> None:
        if number == call:
            raise KeyboardInterrupt

    encoder.before_call = stop
    return encoder


def test_an_interrupted_sync_says_what_is_saved_and_goes_on_from_there(tmp_path: Path) -> None:
    write(tmp_path, {"gone.txt": "Gone soon."})
    sync(tmp_path)
    (tmp_path / "gone.txt").unlink()
    write(tmp_path, {f"{i:02}.txt": paragraphs(10, f"d{i}") for i in range(12)})
    with pytest.raises(SyncInterrupted) as raised:
        sync(tmp_path, interrupt_at(2), settings=SyncSettings(group_passages=30))
    saved = raised.value.report
    assert isinstance(raised.value, KeyboardInterrupt)
    assert (saved.added, saved.embedded, saved.deleted) == (6, 60, 1)
    assert len(texts(tmp_path)) == 6
    encoder = RecordingEncoder()
    report = sync(tmp_path, encoder)
    assert numbers(report) == (6, 0, 0, 0, 6)
    assert len(encoder.texts) == 60


def test_an_interrupted_large_document_loses_one_group(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": paragraphs(100, "w")})
    with pytest.raises(SyncInterrupted) as raised:
        sync(tmp_path, interrupt_at(2), settings=SyncSettings(group_passages=40))
    assert (raised.value.report.added, raised.value.report.embedded) == (0, 80)
    assert len(texts(tmp_path)["a.txt"]) == 80, "what is committed is searchable"
    encoder = RecordingEncoder()
    report = sync(tmp_path, encoder)
    assert (report.updated, report.embedded, report.reused) == (1, 20, 80)
    assert sync(tmp_path).unchanged == 1


def test_a_killed_process_loses_the_group_in_hand(tmp_path: Path) -> None:
    write(tmp_path, {f"{i}.txt": paragraphs(10, f"d{i}") for i in range(6)})
    program = (
        "import os, sys; from likewise.embedder.hash_encoder import HashEncoder\n"
        "from likewise.index.index import Index; from likewise.index.settings import SyncSettings\n"
        "class Dying(HashEncoder):\n"
        "    calls = 0\n"
        "    def embed(self, texts, *, role):\n"
        "        self.calls += 1\n"
        "        if self.calls == 3: os._exit(9)\n"
        "        return super().embed(texts, role=role)\n"
        f"Index.open({str(tmp_path / '.likewise')!r}, encoder=Dying(64, 64)).sync(\n"
        f"    [{str(tmp_path)!r}], settings=SyncSettings(group_passages=20))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    assert len(texts(tmp_path)) == 4
    report = sync(tmp_path)
    assert numbers(report) == (2, 0, 0, 0, 4)


def test_a_failed_commit_keeps_what_was_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"{i}.txt": paragraphs(10, f"d{i}") for i in range(6)})
    real, calls = Catalogue.apply, []

    def full(catalogue: Catalogue, changes: Sequence[Change]) -> None:
        calls.append(len(changes))
        if len(calls) == 3:
            raise IndexFolderError("no space left")
        real(catalogue, changes)

    monkeypatch.setattr(Catalogue, "apply", full)
    with pytest.raises(IndexFolderError, match="no space left"):
        sync(tmp_path, settings=SyncSettings(group_passages=20))
    monkeypatch.undo()
    assert len(texts(tmp_path)) == 4
    assert sync(tmp_path).added == 2


# -- encoders and settings -------------------------------------------------------------------------------


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


# -- reporting -------------------------------------------------------------------------------------------


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
