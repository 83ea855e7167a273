from __future__ import annotations

from pathlib import Path

from likewise.index.diff import KnownDocument, Plan, compare, settled_mtime
from likewise.index.readers.base import FileContent
from likewise.index.records import DocumentState
from likewise.index.scan import FileEntry

READERS = frozenset({"text/1"})
SECOND = 10**9


def entry(key: str, size: int = 3, mtime: int = 1) -> FileEntry:
    return FileEntry(key, Path("/") / key, size, mtime)


def known(
    content: str = "h",
    size: int = 3,
    mtime: int = 1,
    state: DocumentState = DocumentState.OK,
    reader: str = "text/1",
) -> KnownDocument:
    return KnownDocument(size, mtime, content, state, reader)


def plan(
    found: list[FileEntry],
    stored: dict[str, KnownDocument],
    contents: dict[str, str] | None = None,
    *,
    cut_again: bool = False,
    unlisted: tuple[str, ...] = (),
    max_bytes: int | None = None,
) -> tuple[Plan, list[str]]:
    """The plan, and the keys of the files that were hashed for it."""
    hashed: list[str] = []

    def content_of(file: FileEntry) -> FileContent | None:
        hashed.append(file.key)
        content = (contents or {}).get(file.key)
        return None if content is None else FileContent(content, file.size, file.mtime_ns)

    result = compare(
        {file.key: file for file in found},
        stored,
        content_of=content_of,
        readers=READERS,
        cut_again=cut_again,
        unlisted=unlisted,
        max_bytes=max_bytes,
    )
    return result, hashed


def test_same_size_and_time_is_not_even_hashed() -> None:
    result, hashed = plan([entry("a")], {"a": known()})
    assert (result, hashed) == (Plan(unchanged=1), [])


def test_another_time_with_the_same_content_is_a_touch() -> None:
    result, hashed = plan([entry("a", mtime=2)], {"a": known()}, {"a": "h"})
    assert result == Plan(touched=[("a", FileContent("h", 3, 2))], unchanged=1)
    assert hashed == ["a"]


def test_another_size_is_read_without_hashing_it_first() -> None:
    result, hashed = plan([entry("a", size=4)], {"a": known()}, {"a": "h"})
    assert ([file.key for file in result.read], hashed) == (["a"], [])


def test_a_file_that_vanishes_while_it_is_hashed_is_left_to_the_reader() -> None:
    result, _ = plan([entry("a", mtime=2)], {"a": known()})
    assert [file.key for file in result.read] == ["a"]


def test_what_was_never_read_is_tried_again_except_what_is_too_large() -> None:
    stored = {
        "denied": known("", state=DocumentState.FAILED),
        "large": known("", state=DocumentState.TOO_LARGE),
        "broken": known("h", state=DocumentState.FAILED),
        "partial": known(""),
    }
    result, _ = plan([entry(key) for key in stored], stored)
    assert [file.key for file in result.read] == ["denied", "partial"]
    assert result.unchanged == 2


def test_what_was_too_large_is_read_once_it_fits() -> None:
    stored = {
        "large": known("", state=DocumentState.TOO_LARGE),
        "unpacked": known("h", state=DocumentState.TOO_LARGE),  # read, but its text was too long
    }
    found = [entry(key, size=3) for key in stored]
    assert [file.key for file in plan(found, stored, max_bytes=3)[0].read] == ["large"]
    assert plan(found, stored, max_bytes=2)[0].read == []


def test_another_reader_or_cut_reads_again() -> None:
    stored = {"old": known(reader="text/0"), "same": known(), "empty": known(state=DocumentState.EMPTY)}
    found = [entry(key) for key in stored]
    assert [file.key for file in plan(found, stored)[0].read] == ["old"]
    assert [file.key for file in plan(found, stored, cut_again=True)[0].read] == ["old", "same"]


def test_moves_need_the_same_content_and_a_like_name() -> None:
    stored = {"a/x.txt": known("hx"), "a/y.txt": known("hy"), "a/z": known("hz"), "w.md": known("hw")}
    found = [entry("b/x.txt"), entry("b/other.txt"), entry("b/z"), entry("w.html"), entry("big.txt", size=9)]
    contents = {"b/x.txt": "hx", "b/other.txt": "hy", "b/z": "hz", "w.html": "hw", "big.txt": "hx"}
    result, hashed = plan(found, stored, contents)
    assert {(move.key, move.entry.key) for move in result.moves} == {
        ("a/x.txt", "b/x.txt"),
        ("a/y.txt", "b/other.txt"),
        ("a/z", "b/z"),
    }
    assert [file.key for file in result.read] == ["w.html", "big.txt"]
    assert result.gone == ["w.md"]
    assert "big.txt" not in hashed, "no missing document has its size"


def test_one_missing_document_moves_once() -> None:
    result, _ = plan([entry("b.txt"), entry("c.txt")], {"a.txt": known()}, {"b.txt": "h", "c.txt": "h"})
    assert [move.entry.key for move in result.moves] == ["b.txt"]
    assert [file.key for file in result.read] == ["c.txt"]


def test_a_document_that_must_be_read_again_does_not_just_move() -> None:
    result, _ = plan([entry("b.txt")], {"a.txt": known()}, {"b.txt": "h"}, cut_again=True)
    assert (result.moves, [file.key for file in result.read], result.gone) == ([], ["b.txt"], ["a.txt"])


def test_what_lies_in_a_folder_that_could_not_be_listed_is_not_gone() -> None:
    stored = {"locked/a": known(), "locked2/b": known()}
    assert plan([], stored, unlisted=("locked/",))[0].gone == ["locked2/b"]


def test_recent_times_are_stored_so_that_they_do_not_match() -> None:
    content = FileContent("h", 3, 100 * SECOND)
    assert settled_mtime(content, 101 * SECOND) == 100 * SECOND - 1
    assert settled_mtime(content, 103 * SECOND) == 100 * SECOND
    assert settled_mtime(content, 90 * SECOND) == 100 * SECOND - 1, "a clock that is behind"
