"""Mining over an index of the training texts."""

from __future__ import annotations

import numpy as np
import pytest

from likewise import HashEncoder
from likewise.embedder.siamese.miner import MiningSettings, mine
from likewise.embedder.siamese.pairs import PairData
from likewise.retrieval.mining import cosine_score, text_search

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
