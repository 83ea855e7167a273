"""A copy that can be changed without touching the index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from likewise.errors import IndexNotFound
from likewise.index.catalogue import Catalogue
from likewise.index.rows import DeleteDocument, WriteDocument
from likewise.index.scratch import scratch_copy


def keys(folder: Path) -> list[str]:
    with Catalogue.open(folder, mode="read") as catalogue:
        return [row.key for row in catalogue.documents()]


def test_changes_stay_in_the_copy(empty_index: Path, make_document: Callable[..., WriteDocument]) -> None:
    with Catalogue.open(empty_index, mode="write") as catalogue:
        catalogue.apply([make_document("a", ["one"]), make_document("b", ["two"])])
        # The copy holds what is committed, even while a writer has the index open.
        with scratch_copy(empty_index) as copy:
            with Catalogue.open(copy, mode="write") as other:
                other.apply([DeleteDocument("a")])
            assert keys(copy) == ["b"]
            assert keys(empty_index) == ["a", "b"]
    assert not copy.exists()
    assert not copy.parent.exists()


def test_the_copy_is_gone_after_an_error(empty_index: Path) -> None:
    with pytest.raises(RuntimeError, match="on purpose"), scratch_copy(empty_index) as copy:
        raise RuntimeError("on purpose")
    assert not copy.parent.exists()


def test_no_index(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound), scratch_copy(tmp_path / ".likewise"):
        pass
