from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from likewise.embedder.hash_encoder import HashEncoder
from likewise.index.tokens import TokenWeights, count_tokens, windows


@given(text=st.text(alphabet="ab \n鍵", max_size=200), size=st.integers(1, 50))
def test_windows_join_up_to_the_text(text: str, size: int) -> None:
    found = list(windows(text, 0, len(text), size=size))
    assert "".join(text[a:b] for a, b in found) == text
    assert all(0 < b - a <= size for a, b in found)


@given(text=st.text(alphabet="ab, \n鍵", max_size=300))
def test_weights_are_those_of_the_tokenizer(text: str) -> None:
    encoder = HashEncoder()
    [spans] = encoder.token_spans([text])
    gaps = np.diff(np.concatenate([[0], spans[:, 0], [len(text)]]))
    if gaps.max() > 32 or not len(spans) or spans[0, 0] > 0:
        return  # then stretches without tokens weigh something too
    weights = TokenWeights(text, 0, len(text), encoder)
    offsets = list(range(len(text) + 1))
    assert weights.before(offsets) == [int((spans[:, 0] < offset).sum()) for offset in offsets]


def test_the_windows_of_a_long_text_count_as_one() -> None:
    text = "word " * 20_000
    weights = TokenWeights(text, 0, len(text), HashEncoder())
    assert weights.before([0, 50, len(text)]) == [0, 10, 20_000]
    assert weights.start_of(10) == 50


class OneTokenEncoder(HashEncoder):
    """Takes any text for a single unknown token."""

    def token_spans(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        return [np.array([[0, len(text)]], dtype=np.int32) for text in texts]


class NoTokenEncoder(HashEncoder):
    """Finds nothing to read in any text."""

    def token_spans(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        return [np.empty((0, 2), dtype=np.int32) for _ in texts]


def test_no_stretch_of_text_is_weightless() -> None:
    text = "x" * 3_200
    assert TokenWeights(text, 0, 3_200, OneTokenEncoder()).before([3_200]) == [100]
    assert TokenWeights(text, 0, 3_200, NoTokenEncoder()).before([3_200]) == [100]


def test_counting() -> None:
    assert count_tokens(["a b", "", "你好"], HashEncoder()) == [2, 0, 2]
    assert count_tokens([], HashEncoder()) == []
