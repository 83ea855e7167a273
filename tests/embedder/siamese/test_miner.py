"""Choosing hard negatives: ranks, margins, and no positive ever."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.embedder.siamese.miner import MiningSettings, mine
from likewise.embedder.siamese.pairs import PairData
from likewise.errors import DataError, UsageError

SCORES = {"p1": 0.8, "p2": 0.7, "n1": 0.79, "n2": 0.75, "n3": 0.5, "n4": 0.1}


def score(anchors, texts):
    return np.array([SCORES[text] for text in texts], dtype=np.float32)


def ranked(anchor, k):
    return sorted(SCORES, key=lambda text: -SCORES[text])[:k]


def data(anchors=("q",), positives=("p1",)):
    return PairData("d", {"anchor": list(anchors), "positive": list(positives)})


def free(**changes):
    return MiningSettings(**{"relative_margin": None, **changes})


class TestChoice:
    def test_best_first(self):
        found = mine(data(), ranked, free(negatives=3))
        assert [found.data.columns[f"negative_{n}"] for n in (1, 2, 3)] == [["n1"], ["n2"], ["p2"]]
        assert (found.left_out, found.positives, found.too_close) == (0, 1, 0)

    def test_ranks(self):
        found = mine(data(), ranked, free(negatives=1, first=4, last=5))
        assert found.data.columns["negative_1"] == ["p2"]  # p1 n1 n2 [p2 n3] n4

    def test_margins(self):
        absolute = mine(data(), ranked, free(margin=0.1), score=score)
        assert absolute.data.columns["negative_1"] == ["p2"] and absolute.too_close == 2
        relative = mine(data(), ranked, MiningSettings(relative_margin=0.06), score=score)
        assert relative.data.columns["negative_1"] == ["n2"] and relative.too_close == 1
        both = mine(data(), ranked, MiningSettings(margin=0.25, relative_margin=0.06), score=score)
        assert both.data.columns["negative_1"] == ["n3"]

    def test_positives_of_other_rows_are_no_negatives(self):
        found = mine(data(("q", " q", "r"), ("p1", "p2 ", "n1")), ranked, free())
        assert found.data.columns["negative_1"] == ["n1", "n1", "p1"]

    def test_what_holds_a_positive_or_is_part_of_one_is_no_negative(self):
        positive = "Rotate every signing\nkey once a year."
        texts = [
            f"Keys. {positive.replace(chr(10), '  ')} Ask first.",
            "Rotate every signing key",
            "Rotate all keys every month.",
        ]
        found = mine(data(("how often",), (positive,)), lambda a, k: texts, free())
        assert found.data.columns["negative_1"] == [texts[2]] and found.positives == 2
        short = mine(data(("is it", "was it"), ("yes", "no")), lambda a, k: ["yes and no"], free())
        assert short.data.columns["negative_1"] == ["yes and no"] * 2

    def test_a_positive_below_zero_still_has_a_margin(self):
        values = {"p1": -0.2, "n1": -0.1, "n2": -0.205, "n3": -0.3}
        found = mine(
            data(),
            lambda a, k: ["n1", "n2", "n3"],
            MiningSettings(relative_margin=0.05),
            score=lambda anchors, texts: np.array([values[text] for text in texts], dtype=np.float32),
        )
        assert found.data.columns["negative_1"] == ["n3"] and found.too_close == 2

    def test_rows_without_enough_are_left_out(self):
        one = mine(data(("q", "r"), ("p1", "p1")), lambda a, k: ["n1"] if a == "q" else ["p1"], free())
        assert one.data.columns["anchor"] == ["q"] and one.left_out == 1
        with pytest.raises(DataError, match="no row has 2 negatives among ranks 1 to 30"):
            mine(data(), lambda a, k: ["n1"], free(negatives=2))

    def test_sampling_follows_the_seed(self):
        picks = {
            seed: mine(data(), ranked, free(negatives=2, sample=True, seed=seed)).data.columns
            for seed in range(8)
        }
        assert picks[3] == mine(data(), ranked, free(negatives=2, sample=True, seed=3)).data.columns
        assert len({tuple(columns["negative_1"]) for columns in picks.values()}) > 1

    @given(st.lists(st.sampled_from(sorted(SCORES)), min_size=1, max_size=6), st.integers(1, 3))
    def test_never_a_positive(self, positives, negatives):
        try:
            found = mine(data(["q"] * len(positives), positives), ranked, free(negatives=negatives))
        except DataError:
            assert len(SCORES) - len(set(positives)) < negatives
            return
        for number in range(1, negatives + 1):
            assert not set(found.data.columns[f"negative_{number}"]) & set(positives)


@pytest.mark.parametrize(
    "changes", [{"negatives": 0}, {"first": 0}, {"first": 5, "last": 4}, {"relative_margin": 1.0}]
)
def test_settings_that_make_no_sense(changes):
    with pytest.raises(UsageError, match="expected"):
        MiningSettings(**changes)


def test_a_margin_needs_scores():
    with pytest.raises(UsageError, match="nothing that scores"):
        mine(data(), ranked, MiningSettings())
