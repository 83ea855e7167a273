"""Documents in three parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import DataError
from likewise.retrieval.adaptation.split import split_documents


@given(
    keys=st.sets(st.text(min_size=1, max_size=8), min_size=6, max_size=60),
    held_out=st.floats(0.01, 0.99),
    seed=st.integers(0, 5),
)
def test_every_document_is_in_one_part(keys: set[str], held_out: float, seed: int) -> None:
    parts = split_documents(sorted(keys), held_out=held_out, seed=seed)
    assert parts.learned | parts.choosing | parts.verdict == keys
    assert len(parts.learned) + len(parts.choosing) + len(parts.verdict) == len(keys)
    assert len(parts.learned) >= 2 and parts.choosing and parts.verdict
    assert parts.held_out == keys - parts.learned
    assert parts == split_documents(sorted(keys, reverse=True), held_out=held_out, seed=seed)


def test_a_new_document_moves_few_others() -> None:
    keys = [f"{number}.md" for number in range(200)]
    before, after = split_documents(keys), split_documents([*keys, "new.md"])
    assert len(before.learned ^ after.learned) <= 3


def test_translations_are_never_in_two_parts() -> None:
    """What was learned from a document says too much about its translation."""
    names = [f"{number:02}.md" for number in range(20)]
    parts = split_documents([f"{code}/{name}" for code in ("en", "zh", "ja") for name in names], seed=3)
    sides = [{key[3:] for key in part} for part in (parts.learned, parts.choosing, parts.verdict)]
    assert [len(part) for part in (parts.learned, parts.choosing, parts.verdict)] == [36, 6, 18]
    assert not (sides[0] & sides[1] or sides[0] & sides[2] or sides[1] & sides[2])


def test_too_few_documents() -> None:
    with pytest.raises(DataError, match=r"at least 6 documents with text.* found 1"):
        split_documents(["only.md"])
    with pytest.raises(DataError, match="found 8 in 4 sets of translations"):
        split_documents([f"{code}/{number}.md" for code in ("en", "zh") for number in range(4)])
