"""Metrics against independent implementations, evaluators against written-out vectors, honest verdicts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import average_precision_score

from likewise.embedder.siamese import evaluators as ev
from likewise.embedder.siamese.metrics import average_precision, best_threshold, pearson, ranks, spearman
from likewise.embedder.siamese.pairs import PairData
from likewise.embedder.siamese.verdict import judge
from likewise.errors import DataError

numbers = st.lists(st.integers(-5, 5), min_size=3, max_size=30)


class TestMetrics:
    @given(numbers, st.integers(0, 100))
    def test_correlations(self, values, seed):
        x = np.array(values, dtype=float)
        y = np.random.default_rng(seed).integers(-3, 3, len(x)).astype(float)
        np.testing.assert_array_equal(ranks(x), stats.rankdata(x))
        if x.std() == 0 or y.std() == 0:
            assert spearman(x, y) == 0.0
            return
        assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
        assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic)

    @given(numbers, st.integers(0, 100))
    def test_average_precision_and_threshold(self, values, seed):
        scores = np.array(values, dtype=float)
        labels = np.random.default_rng(seed).integers(0, 2, len(scores))
        if labels.any():
            assert average_precision(scores, labels) == pytest.approx(average_precision_score(labels, scores))
        else:
            assert average_precision(scores, labels) == 0.0
        threshold, accuracy = best_threshold(scores, labels)
        assert ((scores >= threshold) == labels).mean() == pytest.approx(accuracy)
        every = [((scores >= t) == labels).mean() for t in (*scores, np.inf)]
        assert accuracy == pytest.approx(max(every))


class Table:
    """Stands in for a token table: numbers texts as they come."""

    def __init__(self):
        self.texts = {}

    @property
    def identity(self):
        return list(range(len(self.texts)))

    def add(self, texts, *, prompt=""):
        return np.array([self.texts.setdefault(prompt + text, len(self.texts)) for text in texts])


def encode_from(table, vectors):
    unit = {text: np.array(v, dtype=np.float32) / np.linalg.norm(v) for text, v in vectors.items()}
    names = {number: text for text, number in table.texts.items()}
    return lambda wanted: np.stack([unit[names[int(number)]] for number in wanted])


VECTORS = {"a": [1, 0], "b": [1, 1], "c": [0, 1], "d": [-1, 0], "e": [3, 1]}


class TestEvaluators:
    def test_similarity(self):
        table = Table()
        data = PairData(
            "d", {"anchor": ["a"] * 4, "positive": ["e", "b", "c", "d"]}, np.array([4.0, 3, 2, 1])
        )
        measured = ev.SimilarityEvaluator("sts", data, table).measure(encode_from(table, VECTORS))
        cosines = [3 / 10**0.5, 1 / 2**0.5, 0, -1]
        assert measured.metrics["sts.spearman"] == pytest.approx(1)
        assert measured.metrics["sts.pearson"] == pytest.approx(
            stats.pearsonr(cosines, [4, 3, 2, 1]).statistic
        )

    def test_pair_classification(self):
        table = Table()
        data = PairData(
            "d", {"anchor": ["a"] * 4, "positive": ["e", "b", "c", "d"]}, np.array([1.0, 0, 1, 0])
        )
        found = ev.PairClassificationEvaluator("pc", data, table).measure(encode_from(table, VECTORS)).metrics
        assert found["pc.average_precision"] == pytest.approx((1 + 2 / 3) / 2)
        assert found["pc.accuracy"] == 0.75
        assert found["pc.threshold"] == pytest.approx((3 / 10**0.5 + 1 / 2**0.5) / 2)

    def test_triplets(self):
        table = Table()
        data = PairData(
            "d",
            {"anchor": ["a", "a", "a"], "positive": ["e", "b", "c"], "negative_1": ["b", "e", "c"]},
        )
        found = ev.TripletEvaluator("t", data, table).measure(encode_from(table, VECTORS)).metrics
        assert found == {"t.accuracy": pytest.approx(1 / 3)}  # a tie is wrong

    def test_in_batch(self):
        table = Table()
        data = PairData("d", {"anchor": ["a", "b", "c"], "positive": ["b", "e", "c"]})
        found = ev.InBatchEvaluator("p", data, table).measure(encode_from(table, VECTORS)).metrics
        # a: e is nearer than b. b: its own b is nearer than e. c: itself.
        assert found == {"p.mrr": pytest.approx((1 / 2 + 1 / 2 + 1) / 3), "p.accuracy": pytest.approx(1 / 3)}

    def test_other_answers_to_the_same_question_do_not_count_against_it(self):
        table = Table()
        # e is nearest to a, but another row says that it answers a; and the third row has the same positive.
        data = PairData("d", {"anchor": ["a", "a", "c"], "positive": ["b", "e", "e"]})
        found = ev.InBatchEvaluator("p", data, table).measure(encode_from(table, VECTORS)).metrics
        # c: b is nearer than its own e.
        assert found == {"p.mrr": pytest.approx((1 + 1 + 1 / 2) / 3), "p.accuracy": pytest.approx(2 / 3)}

    def test_ranking_is_passed_in(self):
        table = Table()
        seen = []

        def rank(embed):
            seen.append(embed(["a"], "query") @ embed(["c", "e"], "passage").T)
            return [0.5, 1.0]

        evaluator = ev.RankingEvaluator(ev.Ranking("cranfield", "ndcg@10", rank), table)
        table.add(["a", "c", "e"])
        found = evaluator.measure(encode_from(table, VECTORS))
        assert evaluator.primary == "cranfield.ndcg@10" and found.metrics == {"cranfield.ndcg@10": 0.75}
        np.testing.assert_allclose(seen[0], [[0, 3 / 10**0.5]], atol=1e-6)
        with pytest.raises(DataError, match="at least one query"):
            empty = ev.Ranking("x", "ndcg@10", lambda embed: [])
            ev.RankingEvaluator(empty, table).measure(encode_from(table, VECTORS))

    @pytest.mark.parametrize(
        ("kind", "columns", "labels", "message"),
        [
            (ev.SimilarityEvaluator, {"anchor": ["a"], "positive": ["b"]}, None, "with different scores"),
            (ev.SimilarityEvaluator, {"anchor": ["a"] * 2, "positive": ["b"] * 2}, np.ones(2), "different"),
            (ev.PairClassificationEvaluator, {"anchor": ["a"], "positive": ["b"]}, np.ones(1), "both labels"),
            (ev.TripletEvaluator, {"anchor": ["a"], "positive": ["b"]}, None, "found no negative_1"),
            (ev.InBatchEvaluator, {"anchor": ["a"], "positive": ["b"]}, None, "at least two pairs"),
            (ev.InBatchEvaluator, {"anchor": ["a", "b"]}, None, "found no positive"),
        ],
    )
    def test_data_that_do_not_suit(self, kind, columns, labels, message):
        with pytest.raises(DataError, match=message):
            kind("x", PairData("d", columns, labels), Table())


def measured(values):
    array = np.asarray(values, dtype=float)
    return {"q": ev.Measurement(len(array), lambda rows: {"q.ndcg": float(array[rows].mean())})}


class TestVerdict:
    def test_interval_covers_the_mean_of_known_data(self):
        values = np.random.default_rng(0).normal(0.5, 0.1, 400)
        found = ev.interval(measured(values)["q"], "q.ndcg", samples=1000)
        assert found.value == pytest.approx(values.mean())
        # The standard error is 0.1 / 20, so 95% lie within about 0.0098.
        assert found.high - found.low == pytest.approx(2 * 1.96 * 0.1 / 20, rel=0.15)

    def test_pairing_makes_small_gains_visible(self):
        before = np.random.default_rng(0).uniform(0, 1, 200)
        found = judge(measured(before), measured(before + 0.01), "q.ndcg")
        assert found.outcome == "better" and found.improved
        assert found.comparisons[0].gain == pytest.approx((0.01, 0.01, 0.01))
        # Their own intervals overlap by far.
        assert found.comparisons[0].after.low < found.comparisons[0].before.high

    @pytest.mark.parametrize(
        ("after", "outcome", "improved", "words"),
        [
            (0.1, "better", True, "The trained model is better: q.ndcg"),
            (-0.1, "worse", False, "worse than the one it started from"),
            (0.0, "no clear difference", False, "No clear difference"),
        ],
    )
    def test_outcomes(self, after, outcome, improved, words):
        before = np.linspace(0, 1, 50)
        found = judge(measured(before), measured(before + after), "q.ndcg")
        assert (found.outcome, found.improved) == (outcome, improved)
        assert words in found.sentence()
        assert "| q.ndcg | 0.5000" in found.table()

    def test_noise_is_no_improvement(self):
        generator = np.random.default_rng(0)
        before = generator.normal(0, 1, 40)
        found = judge(measured(before), measured(before + generator.normal(0, 1, 40)), "q.ndcg")
        assert found.outcome == "no clear difference" and "includes 0" in found.sentence()

    def test_nothing_measured(self):
        assert judge({}, {}, None).outcome == "not measured"

    def test_other_rows_are_refused(self):
        with pytest.raises(DataError, match="the same rows"):
            judge(measured([0, 1]), measured([0, 1, 1]), "q.ndcg")
