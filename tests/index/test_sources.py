from __future__ import annotations

from pathlib import Path

import pytest

from likewise.errors import SourceError, UsageError
from likewise.index.sources import Job, Scope, Source, choose


def folders(base: Path, *names: str) -> list[Path]:
    for name in names:
        (base / name).mkdir(parents=True, exist_ok=True)
    return [base / name for name in names]


def test_paths_inside_the_base_are_relative_so_that_both_can_move(tmp_path: Path) -> None:
    base, outside = tmp_path / "base", tmp_path / "outside"
    folders(base, "docs")
    assert Source.at(base, base).path == "."
    assert Source.at(base / "docs" / ".." / "docs", base).path == "docs"
    assert Source.at(outside, base).path == outside.as_posix()
    assert Source("docs").location(tmp_path / "moved") == tmp_path / "moved" / "docs"
    assert Source(outside.as_posix()).location(base) == outside


def test_json_round_trip() -> None:
    source = Source("docs", ("*.md",), ("drafts/",))
    assert Source.from_json(source.to_json()) == source


def test_new_and_known_sources(tmp_path: Path) -> None:
    a, b = folders(tmp_path, "a", "b")
    sources, jobs = choose([a, b], [Source("a", ("*.md",))], base=tmp_path)
    assert sources == [Source("a", ("*.md",)), Source("b")]
    assert jobs == [Job(Source("a", ("*.md",))), Job(Source("b"))]
    sources, jobs = choose([a], sources, base=tmp_path, exclude=["x"])
    assert sources == [Source("a", (), ("x",)), Source("b")]
    assert jobs == [Job(Source("a", (), ("x",)))]


def test_a_folder_inside_a_source_is_part_of_it(tmp_path: Path) -> None:
    folders(tmp_path, "a/b/c", "a/d")
    known = [Source("a"), Source("a/b")]
    sources, jobs = choose([tmp_path / "a/b/c", tmp_path / "a/d"], known, base=tmp_path)
    assert sources == known
    assert jobs == [Job(Source("a/b"), tmp_path / "a/b/c"), Job(Source("a"), tmp_path / "a/d")]


def test_a_folder_around_sources_takes_them_along(tmp_path: Path) -> None:
    folders(tmp_path, "a/b")
    sources, jobs = choose([tmp_path / "a"], [Source("a/b", ("*.md",))], base=tmp_path)
    assert sources == [Source("a/b", ("*.md",)), Source("a")]
    assert set(jobs) == {Job(Source("a")), Job(Source("a/b", ("*.md",)))}


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no source is remembered"):
        choose(None, [], base=tmp_path)
    with pytest.raises(UsageError, match="none was named"):
        choose(None, [Source(".")], base=tmp_path, include=["*.md"])
    with pytest.raises(SourceError, match="does not exist; nothing was changed"):
        choose([tmp_path / "no"], [], base=tmp_path)
    with pytest.raises(SourceError, match="the index was made from it"):
        choose(None, [Source("no")], base=tmp_path)


def test_scope_covers_what_lies_under_its_roots_and_nothing_else(tmp_path: Path) -> None:
    base, outside = tmp_path / "base", (tmp_path / "out").as_posix()
    scope = Scope([Job(Source("docs")), Job(Source(outside)), Job(Source("a"), base / "a" / "b")], base)
    for key in ("docs/x.md", "docs", f"{outside}/y.md", "a/b/z.md"):
        assert scope.covers(key), key
    for key in ("docs2/x.md", "x.md", f"{outside}2/y.md", "a/z.md", "a/b2/z.md"):
        assert not scope.covers(key), key
    assert scope.wanted(0, "anything")
    assert scope.wanted(2, "a/b/c") and not scope.wanted(2, "a/c")


def test_a_source_that_holds_the_base_covers_relative_keys(tmp_path: Path) -> None:
    base = tmp_path / "all" / "base"
    scope = Scope([Job(Source((tmp_path / "all").as_posix()))], base)
    assert scope.covers("x.md") and scope.covers((tmp_path / "all" / "y.md").as_posix())
    assert not scope.covers((tmp_path / "z.md").as_posix())
