"""Which files a sync looks at, and which documents it may touch."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.errors import SourceError, UsageError
from likewise.index.index import Index

from .syncing import sync, texts, write


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
