"""Many files, and one long one, along the whole path; the hash encoder keeps it short."""

from __future__ import annotations

from pathlib import Path

from likewise.index.index import Index
from likewise.index.report import SyncEvent
from likewise.retrieval.search import Retriever

FILES = 2000
LINES = 12_000


def test_many_files_are_indexed_once_and_only_the_changed_one_again(tmp_path: Path) -> None:
    for number in range(FILES):
        folder = tmp_path / f"d{number % 50}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.txt").write_text(f"Note {number} is about matter{number}.", encoding="utf-8")
    with Index.open(tmp_path / ".likewise", encoder="hash") as index:
        first = index.sync([tmp_path])
        assert (first.added, first.passages, first.skipped) == (FILES, FILES, ())
        changed = tmp_path / "d7" / "1707.txt"
        changed.write_text("Now it is about kangaroos.", encoding="utf-8")
        (tmp_path / "d8" / "1708.txt").unlink()
        again = index.sync()
        assert (again.updated, again.deleted, again.unchanged) == (1, 1, FILES - 2)
        assert again.embedded == 1
        retriever = Retriever(index)
        assert retriever.search("kangaroos", k=1)[0].path == "d7/1707.txt"
        assert retriever.search("matter1999", k=1)[0].path == "d49/1999.txt"
        assert "d8/1708.txt" not in {hit.path for hit in retriever.search("matter1708", k=50)}


def test_one_long_file_is_whole_and_shows_how_far_it_is(tmp_path: Path) -> None:
    lines = [
        f"Entry {number}: valve{number} was opened, checked and closed again by shift {number % 7}.\n"
        for number in range(LINES)
    ]
    (tmp_path / "log.txt").write_text("".join(lines), encoding="utf-8")
    events: list[SyncEvent] = []
    with Index.open(tmp_path / ".likewise", encoder="hash") as index:
        report = index.sync([tmp_path], progress=events.append)
        hits = Retriever(index).search(f"valve{LINES - 1}", k=1, mode="lexical")
        with index.view() as view:
            passages = view.document_passages("log.txt")
    assert report.embedded == report.passages == len(passages)
    first, last = hits[0].lines
    assert "".join(lines[first - 1 : last]).strip() == hits[0].text
    assert last == LINES
    # Every line is in one passage.
    assert sorted(
        line for stored in passages for line in range(stored.passage.lines[0], stored.passage.lines[1] + 1)
    ) == list(range(1, LINES + 1))
    moving = [(event.embedded, event.to_embed) for event in events if event.phase == "index"]
    assert moving == sorted(moving)
    assert len(set(moving)) > 10
    assert moving[-1] == (report.passages, report.passages)
