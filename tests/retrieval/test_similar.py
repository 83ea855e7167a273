"""Similar passages: how a target is named, and what is left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise.errors import UsageError
from likewise.index.records import Filter
from likewise.retrieval.search import Retriever

MakeIndex = Callable[..., Any]


def test_passage_is_compared_by_its_stored_vector_and_left_out(make_index: MakeIndex) -> None:
    index = make_index()
    result = Retriever(index).similar(1)
    vectors = index.memory.vectors(np.arange(1, 8))
    cosines = vectors @ vectors[0]
    order = [row + 1 for row in sorted(range(1, 7), key=lambda row: (-cosines[row], row))]
    assert [hit.passage_id for hit in result] == order
    assert result[0].score == pytest.approx(float(cosines[order[0] - 1]), abs=1e-6)
    assert index.encoder_uses == 0
    assert (result.mode, result.query) == ("similar", "passage 1")


def test_document_can_be_left_out(make_index: MakeIndex) -> None:
    retriever = Retriever(make_index())
    assert 2 in [hit.passage_id for hit in retriever.similar(1)]
    assert 2 not in [hit.passage_id for hit in retriever.similar(1, exclude="document")]
    with pytest.raises(UsageError, match="exclude passage or document, found 'all'"):
        retriever.similar(1, exclude="all")  # type: ignore[arg-type]


def test_file_is_the_mean_of_its_passages(make_index: MakeIndex) -> None:
    index = make_index()
    result = Retriever(index).similar("docs/keys.md", k=2)
    mean = index.memory.vectors(np.array([1, 2])).mean(axis=0)
    mean /= np.linalg.norm(mean)
    cosines = index.memory.vectors(np.arange(3, 8)) @ mean
    assert result[0].path == "old/keys.md"
    assert result[0].score == pytest.approx(float(cosines.max()), abs=1e-6)
    assert all(hit.path != "docs/keys.md" for hit in result)


@pytest.mark.parametrize(
    ("line", "passage"), [(1, 1), (2, 1), (3, 2), (999, 2)], ids=["first", "gap", "second", "behind"]
)
def test_line_names_the_passage_that_covers_it_or_the_nearest(
    make_index: MakeIndex, line: int, passage: int
) -> None:
    retriever = Retriever(make_index())
    result = retriever.similar(f"docs/keys.md:{line}")
    assert [hit.passage_id for hit in result] == [hit.passage_id for hit in retriever.similar(passage)]
    assert result.query == f"docs/keys.md:{line}"


def test_paths_as_seen_from_the_working_directory(
    make_index: MakeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs" / "zh").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "docs" / "zh")
    retriever = Retriever(make_index())
    wanted = [hit.passage_id for hit in retriever.similar("docs/zh/金鑰.md")]
    for target in (
        "金鑰.md",
        "./金鑰.md",
        str(tmp_path / "docs" / "zh" / "金鑰.md"),
        Path("金鑰.md"),
        r"docs\zh\金鑰.md",
    ):
        assert [hit.passage_id for hit in retriever.similar(target)] == wanted
    assert retriever.similar("../keys.md:3").query == "docs/keys.md:3"


def test_digits_name_a_file_first_and_a_passage_otherwise(make_index: MakeIndex) -> None:
    assert Retriever(make_index()).similar("3").query == "passage 3"
    assert Retriever(make_index({"3": ("one text",), "b.md": ("another text",)})).similar("3").query == "3"


def test_filter_and_k(make_index: MakeIndex) -> None:
    result = Retriever(make_index()).similar("docs/keys.md", k=1, filter=Filter(paths=("docs/zh/**",)))
    assert len(result) == 1 and result[0].path.startswith("docs/zh/")
    nothing = Retriever(make_index()).similar(1, filter=Filter(paths=("no",)))
    assert len(nothing) == 0 and nothing.notices == ("the filter matches no passage",)


@pytest.mark.parametrize("target", [99, "99"])
def test_unknown_passage(make_index: MakeIndex, target: int | str) -> None:
    with pytest.raises(UsageError, match="no passage 99 in the index"):
        Retriever(make_index()).similar(target)


def test_unknown_file_suggests_what_is_there(make_index: MakeIndex) -> None:
    with pytest.raises(UsageError, match=r"guide/假期\.md is not in the index") as caught:
        Retriever(make_index()).similar("guide/假期.md:4")
    assert caught.value.remedy == "likewise similar docs/zh/假期.md"
    with pytest.raises(UsageError) as caught:
        Retriever(make_index()).similar("nothing-like-it.pdf")
    assert caught.value.remedy == "likewise status --documents, to see what the index holds"


def test_file_without_passages_says_its_state(make_index: MakeIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    index = make_index()
    monkeypatch.setattr(
        index.memory, "documents", lambda: iter([SimpleNamespace(key="scan.pdf", state="needs-ocr")])
    )
    with pytest.raises(
        UsageError, match=r"scan.pdf is in the index but has no passages: its state is needs-ocr"
    ):
        Retriever(index).similar("scan.pdf")
