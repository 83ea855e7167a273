from __future__ import annotations

import re
import string
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.embedder.heads.metrics import answers, calibration, classification, correlation, multilabel
from likewise.embedder.heads.metrics.bootstrap import bootstrap, mean_and_spread
from likewise.embedder.heads.metrics.entities import add_entities, all_types, count_entities, entities
from likewise.errors import DataError

CASES = st.integers(2, 5).flatmap(
    lambda classes: st.tuples(
        st.just(classes),
        st.lists(
            st.tuples(st.integers(0, classes - 1), st.integers(0, classes - 1)), min_size=1, max_size=40
        ),
    )
)
TAGS = st.sampled_from(["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in ("PER", "LOC"))])


@given(cases=CASES)
@settings(max_examples=60, deadline=None)
def test_classification_equals_scikit_learn(cases):
    from sklearn import metrics

    classes, pairs = cases
    gold, predicted = [g for g, _ in pairs], [p for _, p in pairs]
    counts = classification.count_classes(np.array(gold), np.array(predicted), classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert classification.accuracy(counts) == pytest.approx(metrics.accuracy_score(gold, predicted))
        expected = metrics.f1_score(gold, predicted, average="macro", zero_division=0)
        assert classification.macro_f1(counts) == pytest.approx(expected)
        assert classification.matthews(counts) == pytest.approx(metrics.matthews_corrcoef(gold, predicted))


def counts_of(gold, predicted, classes):
    return classification.count_classes(np.array(gold, dtype=int), np.array(predicted, dtype=int), classes)


def test_classification_by_hand():
    counts = counts_of([0, 0, 0, 1, 2], [0, 0, 1, 1, 1], 4)
    assert classification.accuracy(counts) == 0.6
    # F1: 2*2/(3+2) = .8, 2*1/(1+3) = .5, 0/(1+0) = 0; the fourth class occurs nowhere and does not count.
    assert classification.f1_by_class(counts)[:3].tolist() == [0.8, 0.5, 0.0]
    assert np.isnan(classification.f1_by_class(counts)[3])
    assert classification.macro_f1(counts) == pytest.approx(1.3 / 3)
    matrix = classification.confusion([0, 0, 0, 1, 2], [0, 0, 1, 1, 1], 4)
    assert matrix.tolist() == [[2, 1, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    with pytest.raises(DataError, match="each of 2 cases, found 1"):
        counts_of([0, 1], [0], 2)


def test_a_class_that_the_model_does_not_know_is_never_right():
    counts = counts_of([0, -1, 1, -1], [0, 1, 1, 0], 2)
    assert classification.accuracy(counts) == 0.5
    # F1: class 0 2*1/(1+2), class 1 2*1/(1+2), the unknown one 0.
    assert classification.macro_f1(counts) == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)


def test_a_hundred_thousand_classes():
    gold = np.arange(100_000)
    assert classification.accuracy(classification.count_classes(gold, gold[::-1], 100_000)) == 0.0
    assert classification.macro_f1(classification.count_classes(gold, gold, 100_000)) == 1.0


def test_nothing_and_one_class_are_no_division_by_zero():
    empty = counts_of([], [], 3)
    assert classification.accuracy(empty) == classification.macro_f1(empty) == 0.0
    one = counts_of([0, 0], [0, 0], 1)
    assert classification.accuracy(one) == 1.0 and classification.matthews(one) == 0.0


@given(
    st.lists(
        st.tuples(
            st.lists(st.booleans(), min_size=3, max_size=3), st.lists(st.booleans(), min_size=3, max_size=3)
        ),
        min_size=1,
        max_size=20,
    )
)
@settings(max_examples=40, deadline=None)
def test_multilabel_equals_scikit_learn(cases):
    from sklearn import metrics

    gold, predicted = (np.array([case[side] for case in cases]) for side in (0, 1))
    micro = metrics.f1_score(gold, predicted, average="micro", zero_division=0)
    assert multilabel.micro_f1(gold, predicted) == pytest.approx(micro)
    assert multilabel.subset_accuracy(gold, predicted) == pytest.approx(
        metrics.accuracy_score(gold, predicted)
    )
    used = np.flatnonzero((gold | predicted).any(axis=0))
    expected = (
        metrics.f1_score(gold, predicted, average="macro", labels=used, zero_division=0) if len(used) else 0
    )
    assert multilabel.macro_f1(gold, predicted) == pytest.approx(expected)


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.floats(-5, 5, allow_subnormal=False)), min_size=3, max_size=30)
)
@settings(max_examples=60, deadline=None)
def test_correlations_equal_scipy(pairs):
    from scipy import stats

    gold, predicted = [float(g) for g, _ in pairs], [round(p, 3) for _, p in pairs]
    if len(set(gold)) == 1 or len(set(predicted)) == 1:
        assert correlation.pearson(gold, predicted) == correlation.spearman(gold, predicted) == 0.0
        return
    assert correlation.pearson(gold, predicted) == pytest.approx(stats.pearsonr(gold, predicted)[0], abs=1e-6)
    assert correlation.spearman(gold, predicted) == pytest.approx(
        stats.spearmanr(gold, predicted)[0], abs=1e-6
    )


@given(st.lists(st.lists(st.tuples(TAGS, TAGS), min_size=1, max_size=12), min_size=1, max_size=5))
@settings(max_examples=200, deadline=None)
def test_entity_scores_equal_seqeval(sequences):
    seqeval = pytest.importorskip("seqeval.metrics")
    gold = [[g for g, _ in sequence] for sequence in sequences]
    predicted = [[p for _, p in sequence] for sequence in sequences]
    found = add_entities([count_entities(g, p) for g, p in zip(gold, predicted, strict=True)])
    total = all_types(found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert total.f1 == pytest.approx(seqeval.f1_score(gold, predicted))
        assert total.precision == pytest.approx(seqeval.precision_score(gold, predicted))
        assert total.recall == pytest.approx(seqeval.recall_score(gold, predicted))
        report = (
            seqeval.classification_report(gold, predicted, output_dict=True, zero_division=0) if found else {}
        )
    for kind, counts in found.items():
        assert counts.f1 == pytest.approx(report[kind]["f1-score"])


def test_entities_of_broken_schemes():
    assert entities(["I-PER", "B-PER", "I-LOC", "E-LOC", "S-PER", "I-PER"]) == [
        ("PER", 0, 0),
        ("PER", 1, 1),
        ("LOC", 2, 3),
        ("PER", 4, 4),
        ("PER", 5, 5),
    ]
    assert entities(["B", "I", "O"]) == [("_", 0, 1)]
    assert entities(["B-A-B", "I-A-B"]) == [("A-B", 0, 1)]
    assert entities([]) == []


# The official scripts' arithmetic, written out again.


def squad_normalize(s):
    s = "".join(ch for ch in s.lower() if ch not in set(string.punctuation))
    return " ".join(re.sub(re.compile(r"\b(a|an|the)\b", re.UNICODE), " ", s).split())


def squad_f1(gold, prediction):
    gold_toks, pred_toks = squad_normalize(gold).split(), squad_normalize(prediction).split()
    num_same = sum((Counter(gold_toks) & Counter(pred_toks)).values())
    if len(gold_toks) == 0 or len(pred_toks) == 0:
        return int(gold_toks == pred_toks)
    if num_same == 0:
        return 0
    precision, recall = num_same / len(pred_toks), num_same / len(gold_toks)
    return (2 * precision * recall) / (precision + recall)


WORDS = st.lists(st.sampled_from(["the", "a", "Fox", "fox!", "red", "U.S.", "1,000", "an", "—"]), max_size=6)


@given(prediction=WORDS, golds=st.lists(WORDS, min_size=1, max_size=3))
def test_english_answers_equal_the_official_script(prediction, golds):
    text, texts = " ".join(prediction), [" ".join(gold) for gold in golds]
    assert answers.f1(text, texts) == max(squad_f1(gold, text) for gold in texts)
    expected = max(int(squad_normalize(gold) == squad_normalize(text)) for gold in texts)
    assert answers.exact_match(text, texts) == expected


PUNCTUATION = ["-", ":", "_", "*", "^", "/", "\\", "~", "`", "+", "=", "，", "。", "：", "？", "！", "“", "”"]
PUNCTUATION += ["；", "’", "《", "》", "……", "·", "、", "「", "」", "（", "）", "－", "～", "『", "』"]


def cmrc_segments(text):
    out, temp = [], ""
    for char in text.lower().strip():
        if char in PUNCTUATION:
            continue
        if re.search(r"[\u4e00-\u9fa5]", char):
            if temp != "":
                out.extend(temp.split())
                temp = ""
            out.append(char)
        else:
            temp += char
    if temp != "":
        out.extend(temp.split())
    return out


def cmrc_f1(gold, prediction):
    a, b = cmrc_segments(gold), cmrc_segments(prediction)
    m = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    longest = 0
    for i in range(len(a)):
        for j in range(len(b)):
            if a[i] == b[j]:
                m[i + 1][j + 1] = m[i][j] + 1
                longest = max(longest, m[i + 1][j + 1])
    if longest == 0:
        return 0
    precision, recall = longest / len(b), longest / len(a)
    return (2 * precision * recall) / (precision + recall)


@given(
    prediction=st.text("金鑰輪替「」，linux 7", min_size=1, max_size=10),
    golds=st.lists(st.text("金鑰輪替「」，linux 7", min_size=1, max_size=10), min_size=1, max_size=3),
)
def test_chinese_answers_equal_the_official_script(prediction, golds):
    if not cmrc_segments(prediction) or not all(map(cmrc_segments, golds)):
        return  # nothing but punctuation, of which the official script makes a zero that says nothing
    assert answers.f1(prediction, golds, language="zh") == max(cmrc_f1(gold, prediction) for gold in golds)
    plain = ["".join(c for c in t.lower().strip() if c not in PUNCTUATION) for t in (prediction, *golds)]
    assert answers.exact_match(prediction, golds, language="zh") == float(plain[0] in plain[1:])


def test_no_answer():
    assert answers.exact_match("", []) == answers.f1("", [""]) == answers.f1("", [], language="zh") == 1.0
    assert (
        answers.f1("something", []) == answers.f1("", ["a fox"]) == answers.f1("金", [], language="zh") == 0.0
    )


def test_bootstrap_interval_is_that_of_the_binomial_and_repeatable():
    right = np.repeat([1.0, 0.0], [300, 100])

    def metrics(chosen):
        return {"right": float(right[chosen].mean()), "wrong": float(1 - right[chosen].mean())}

    found = bootstrap(metrics, 400, samples=2_000)
    half = 1.96 * (0.75 * 0.25 / 400) ** 0.5
    assert found["right"] == pytest.approx((0.75 - half, 0.75 + half), abs=0.01)
    assert found["wrong"] == pytest.approx((0.25 - half, 0.25 + half), abs=0.01)
    assert bootstrap(metrics, 400, samples=2_000) == found
    assert mean_and_spread([0.5]) == (0.5, 0.0)


def test_calibration():
    confidence = np.array([1.0, 1.0, 0.65, 0.65, 0.0])
    right = np.array([True, False, True, True, False])
    bins = calibration.reliability(confidence, right, bins=10)
    assert [part.cases for part in bins] == [1, 2, 2]
    # |0 - 0| * 1/5 + |.65 - 1| * 2/5 + |1 - .5| * 2/5
    assert calibration.calibration_error(bins) == pytest.approx(0.34)
    assert calibration.calibration_error([]) == 0.0
