"""Texts that are put together again: the lines of every pair are those of the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import DataError, IndexNotFound, SourceError
from likewise.index.chunker import chunk
from likewise.index.index import Index
from likewise.index.records import Extraction
from likewise.index.settings import ChunkSettings
from likewise.retrieval.pairs.collect import make_pairs
from likewise.retrieval.pairs.documents import IndexDocuments, PairDocument, read_folder
from likewise.retrieval.pairs.origin import documents_of

LINES = st.lists(
    st.sampled_from(
        ["# Keys", "## Rotation of keys", "", "Rotate the key once a year.", "金鑰每年輪替。", "  x"]
    ),
    min_size=1,
    max_size=40,
)


@given(
    lines=LINES,
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    tokens=st.integers(16, 60),
    overlap=st.integers(0, 8),
)
def test_lines_are_those_of_the_file(lines: list[str], end: str, tokens: int, overlap: int) -> None:
    text = end.join(lines)
    settings = ChunkSettings(target_tokens=tokens, overlap_tokens=overlap)
    passages = chunk(Extraction(text, "text/1"), tokenizer=HashEncoder(), settings=settings)
    if not passages:
        return
    document = PairDocument("a.txt", "", "", tuple(passages))
    assert document.text.split() == text.split()
    for number, line in enumerate(lines, start=1):
        marked = [*lines]
        marked[number - 1] = line = "MARK"
        other = chunk(Extraction(end.join(marked), "text/1"), tokenizer=HashEncoder(), settings=settings)
        found = PairDocument("a.txt", "", "", tuple(other))
        assert found.line_at(found.text.index(line)) == number


def test_pairs_of_an_index_equal_those_of_the_folder(tmp_path: Path) -> None:
    for name, text in {
        "keys.md": "# Signing keys\n\nRotate the signing key once a year. Tell the security team before.\n",
        "zh/金鑰.md": "# 簽署金鑰\n\n金鑰存放在保險庫中，未經資安團隊同意不得取出。簽署金鑰每年輪替一次。\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    encoder = HashEncoder()
    read = read_folder(tmp_path, tokenizer=encoder)
    with Index.open(tmp_path / ".likewise", encoder=encoder) as index:
        index.sync([tmp_path])
        with index.view() as view:
            stored = IndexDocuments(view)
            assert dict(stored) == read
            assert make_pairs(stored).pairs == make_pairs(read).pairs


def test_links_of_html_are_found_in_its_file_while_it_is_unchanged(tmp_path: Path) -> None:
    for name, text in {
        "index.html": '<h1>Start</h1><p>Read <a href="zh/keys.html">where the keys are</a>.</p>',
        "zh/keys.html": "<h1>金鑰</h1><p>金鑰存放在保險庫中，未經同意不得取出。簽署金鑰每年輪替一次。</p>",
        "notes.txt": "Nothing but text.",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    read = make_pairs(read_folder(tmp_path, tokenizer=HashEncoder()), kinds=["link"]).pairs
    assert [(pair.anchor, pair.source, pair.anchor_line) for pair in read] == [
        ("where the keys are", "zh/keys.html", 3)
    ]
    with Index.open(tmp_path / ".likewise", encoder="hash") as index:
        index.sync([tmp_path])

    def stored() -> tuple[object, ...]:
        with documents_of(tmp_path, encoder=HashEncoder) as (documents, index):
            assert index is not None, "the folder was read instead of its index"
            return make_pairs(documents, kinds=["link", "title"]).pairs

    assert stored()[-1:] == read
    with (tmp_path / "index.html").open("a") as file:
        file.write("<p>More.</p>")
    changed = stored()
    assert changed and not set(changed) & set(read), "what the index says of it does not hold any more"
    (tmp_path / "index.html").unlink()
    assert stored() == changed


def origin(folder: Path, **named: object) -> tuple[set[str], Path | None]:
    with documents_of(folder, encoder=HashEncoder, **named) as (documents, index):  # type: ignore[arg-type]
        return set(documents), index


def test_where_documents_come_from(tmp_path: Path) -> None:
    for name in ("a/keys.md", "b/keys.md"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("# Keys\n\nRotate them.", "utf-8")
    assert origin(tmp_path / "a") == ({"keys.md"}, None)
    with Index.open(tmp_path / ".likewise", encoder="hash") as index:
        index.sync([tmp_path / "a"])
    assert origin(tmp_path) == ({"a/keys.md"}, tmp_path / ".likewise")
    # An index further up is used for what it holds.
    assert origin(tmp_path / "a") == ({"a/keys.md"}, tmp_path / ".likewise")
    assert origin(tmp_path / "b") == ({"keys.md"}, None)
    assert origin(tmp_path / "a", index=tmp_path / ".likewise") == ({"a/keys.md"}, tmp_path / ".likewise")
    with pytest.raises(DataError, match="holds no documents with text"):
        origin(tmp_path / "b", index=tmp_path / ".likewise")


def test_folders_that_give_nothing(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="found nothing at"):
        origin(tmp_path / "missing")
    (tmp_path / "empty.txt").write_text("", "utf-8")
    with pytest.raises(DataError, match="found 1 files and none with any"):
        origin(tmp_path)
    with pytest.raises(SourceError, match="found a file at"):
        origin(tmp_path / "empty.txt")
    with pytest.raises(IndexNotFound):
        origin(tmp_path, index=tmp_path / "no-index")


def test_reading_tells_how_far_it_is(tmp_path: Path) -> None:
    (tmp_path / "keys.md").write_text("# Keys\n\nRotate them.", "utf-8")
    seen: list[tuple[int, int]] = []
    progress: Callable[[int, int], None] = lambda done, total: seen.append((done, total))  # noqa: E731
    read_folder(tmp_path, tokenizer=HashEncoder(), progress=progress)
    assert seen == [(1, 1)]
