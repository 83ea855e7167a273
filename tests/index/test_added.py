"""Documents that are not files: added, replaced, removed, and left alone by syncs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from likewise.errors import EncoderError, UsageError
from likewise.index.added import TextDocument
from likewise.index.index import Index
from likewise.index.records import DocumentState, Filter
from likewise.index.report import SyncInterrupted

ROWS = (
    TextDocument(
        "row/1", "Signing keys rotate every year.", title="Keys", language="en", metadata={"team": "security"}
    ),
    TextDocument("row/2", "簽署金鑰每年輪替一次。", title="金鑰"),
)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.open(tmp_path / ".likewise", encoder="hash") as opened:
        yield opened


def keys(index: Index) -> list[str]:
    with index.view() as view:
        return [row.key for row in view.documents()]


@pytest.mark.parametrize("name", ["hash:many", "./no-such-model"])
def test_an_unknown_encoder_makes_no_index(name: str, tmp_path: Path) -> None:
    with pytest.raises(EncoderError), Index.open(tmp_path / ".likewise", encoder=name) as index:
        index.add(ROWS)
    assert list(tmp_path.iterdir()) == []


def test_added_documents_are_documents_like_any(index: Index) -> None:
    report = index.add(ROWS)
    assert (report.added, report.passages, report.embedded, report.published) == (2, 2, 2, True)
    with index.view() as view:
        rows = list(view.documents())
        assert [(row.key, row.title, row.language, row.reader) for row in rows] == [
            ("row/1", "Keys", "en", "added/1"),
            ("row/2", "金鑰", "zh", "added/1"),
        ]
        assert rows[0].metadata == {"team": "security"}
        assert rows[1].content_hash == hashlib.sha256(ROWS[1].text.encode()).hexdigest()
        (passage,) = view.document_passages("row/2")
        assert passage.passage.text == ROWS[1].text
        allowed = view.select(Filter(metadata=(("team", "security"),)))
        assert allowed is not None and len(allowed) == 1


def test_the_same_again_costs_nothing_and_another_text_replaces(index: Index) -> None:
    index.add(ROWS)
    again = index.add(ROWS)
    assert (again.unchanged, again.added, again.embedded, again.changed) == (2, 0, 0, 0)
    other = index.add([TextDocument("row/1", "Keys never rotate.", title="Keys", language="en")])
    assert (other.updated, other.embedded) == (1, 1)
    with index.view() as view:
        assert [passage.passage.text for passage in view.document_passages("row/1")] == ["Keys never rotate."]
        assert view.passage_count == 2
    retitled = index.add([TextDocument("row/1", "Keys never rotate.", title="Old keys")])
    assert retitled.updated == 1


def test_a_key_that_comes_twice_keeps_the_last_text(index: Index) -> None:
    report = index.add([TextDocument("a", "first"), TextDocument("a", "second")])
    assert (report.added, report.updated) == (1, 1)
    with index.view() as view:
        assert [passage.passage.text for passage in view.document_passages("a")] == ["second"]


def test_syncs_leave_added_documents_alone(index: Index, tmp_path: Path) -> None:
    (tmp_path / "keys.md").write_text("# Keys\n", encoding="utf-8")
    index.sync([tmp_path])
    index.add([*ROWS, TextDocument("later.md", "Added before the file came.")])
    (tmp_path / "keys.md").unlink()
    (tmp_path / "later.md").write_text("The file.", encoding="utf-8")
    report = index.sync()
    assert keys(index) == ["later.md", "row/1", "row/2"]
    assert report.deleted == 1
    assert report.left_out == (("later.md", "a document that was added has this name"),)
    with index.view() as view:
        (passage,) = view.document_passages("later.md")
        assert passage.passage.text == "Added before the file came."
    assert index.forget(tmp_path) == 0
    assert keys(index) == ["later.md", "row/1", "row/2"]


def test_removing(index: Index, tmp_path: Path) -> None:
    (tmp_path / "keys.md").write_text("# Keys\n", encoding="utf-8")
    index.sync([tmp_path])
    index.add(ROWS)
    with pytest.raises(UsageError, match=r"'keys\.md', which is a file"):
        index.remove(["row/1", "keys.md"])
    assert keys(index) == ["keys.md", "row/1", "row/2"]
    assert index.remove(["row/1", "row/1", "unknown"]) == 1
    assert keys(index) == ["keys.md", "row/2"]


def test_what_cannot_be_added(index: Index, tmp_path: Path) -> None:
    (tmp_path / "keys.md").write_text("# Keys\n", encoding="utf-8")
    index.sync([tmp_path])
    with pytest.raises(UsageError, match="an empty one"):
        index.add([TextDocument("", "text")])
    with pytest.raises(UsageError, match="which is a file"):
        index.add([TextDocument("keys.md", "text")])
    report = index.add([TextDocument("blank", " \n")])
    assert [(item.key, item.state) for item in report.skipped] == [("blank", DocumentState.EMPTY)]
    assert keys(index) == ["blank", "keys.md"]


def test_an_interrupted_run_keeps_what_it_committed(index: Index) -> None:
    def documents() -> Iterator[TextDocument]:
        for number in range(300):
            yield TextDocument(f"row/{number:03}", f"Text number {number}.")
        raise KeyboardInterrupt

    with pytest.raises(SyncInterrupted) as caught:
        index.add(documents())
    saved = caught.value.report.added
    assert 0 < saved < 300 and len(keys(index)) == saved
    assert index.add(TextDocument(f"row/{n:03}", f"Text number {n}.") for n in range(300)).unchanged == saved
