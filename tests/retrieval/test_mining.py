"""Mining over an index of the training texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from likewise import HashEncoder
from likewise.embedder.siamese.miner import MiningSettings, mine
from likewise.embedder.siamese.pairs import PairData
from likewise.retrieval.mining import cosine_score, reranker_score, text_search
from likewise.retrieval.rerank.base import Reranker

ANSWERS = [
    "Rotate the signing key once a year.",
    "Rotate the encryption key once a month.",
    "簽署金鑰每年輪替一次。",
    "Lunch is at noon.",
    "The canteen closes at two. " * 60,
]


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid"])
def test_search_gives_whole_texts_best_first(mode: str) -> None:
    with text_search([*ANSWERS, ANSWERS[0]], "hash", mode) as search:  # type: ignore[arg-type]
        assert search("how do I rotate the signing key -once", 1) == ANSWERS[:1]
        found = search("the canteen closes", 3)
        assert found[0] == ANSWERS[4] and len(found) == len(set(found))
        assert search("簽署金鑰", 1) == [ANSWERS[2]]


def test_the_near_miss_is_mined() -> None:
    data = PairData("d", {"anchor": ["rotate the signing key"], "positive": [ANSWERS[0]]})
    encoder = HashEncoder()
    with text_search(ANSWERS, encoder, "hybrid") as search:
        found = mine(data, search, MiningSettings(margin=0.0), score=cosine_score(encoder))
    assert found.data.columns["negative_1"] == [ANSWERS[1]]
    assert found.positives == 1


def test_scores_are_cosines() -> None:
    encoder = HashEncoder()
    expected = encoder.encode_queries(["key", "key"]) * encoder.encode_passages(ANSWERS[:2])
    np.testing.assert_allclose(
        cosine_score(encoder)(["key", "key"], ANSWERS[:2]), expected.sum(axis=1), atol=1e-6
    )


def test_a_cross_encoder_scores_the_texts_of_an_anchor_together() -> None:
    calls: list[tuple[str, list[str]]] = []

    class Lengths:
        """Scores a text by its length, less that of the query."""

        name = "lengths"

        def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
            calls.append((query, list(texts)))
            return np.array([len(text) - len(query) for text in texts], dtype=np.float32)

    score = reranker_score(cast("Reranker", Lengths()))
    found = score(["a", "bb", "a"], ["xx", "xxxx", "xxxxxx"])
    assert found.tolist() == [1, 2, 5]
    assert calls == [("a", ["xx", "xxxxxx"]), ("bb", ["xxxx"])]
    # The longest text is no negative, since it scores above the positive.
    data = PairData("d", {"anchor": ["a"], "positive": ["xxxx"]})
    settings = MiningSettings(margin=1.0, relative_margin=None)
    mined = mine(data, lambda anchor, k: ["yyyyyy", "yyyy", "yy"], settings, score=score)
    assert mined.data.columns["negative_1"] == ["yy"] and mined.too_close == 2
