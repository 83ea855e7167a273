"""TREC files: what is written gives trec_eval the same figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.errors import DataError
from likewise.retrieval.evaluation.evaluate import evaluate, score_run
from likewise.retrieval.evaluation.judgements import Judgements, load_qrels
from likewise.retrieval.evaluation.metrics import DEFAULT_METRICS
from likewise.retrieval.evaluation.trec import load_run, qrels_lines, run_lines, token

THEIR_NAMES = {
    "nDCG@10": "nDCG@10",
    "recall@10": "R@10",
    "recall@100": "R@100",
    "MAP": "AP",
    "success@1": "Success@1",
    "success@5": "Success@5",
}
ids = st.sampled_from([*"abcdefgh", "my notes.md", "100%.md", "金鑰.md", "keys.md#line=3"])
runs = st.dictionaries(
    st.sampled_from(["1", "2 x", "三"]),
    st.dictionaries(ids, st.floats(-10, 10, width=64), min_size=1),
    min_size=1,
)
qrels = st.dictionaries(
    st.sampled_from(["1", "2 x", "三"]), st.dictionaries(ids, st.integers(0, 3), min_size=1), min_size=1
)


@settings(max_examples=50, deadline=None)
@given(runs, qrels)
def test_written_files_score_the_same_in_ir_measures(
    tmp_path_factory: pytest.TempPathFactory,
    run: dict[str, dict[str, float]],
    qrels: dict[str, dict[str, int]],
) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    folder = tmp_path_factory.mktemp("trec")
    (folder / "run").write_text("\n".join(run_lines(run, "my tag")), encoding="utf-8")
    (folder / "qrels").write_text("\n".join(qrels_lines(qrels)), encoding="utf-8")
    measures = [ir_measures.parse_measure(name) for name in THEIR_NAMES.values()]
    theirs = ir_measures.calc_aggregate(
        measures,
        list(ir_measures.read_trec_qrels(str(folder / "qrels"))),
        list(ir_measures.read_trec_run(str(folder / "run"))),
    )
    by_name = {str(measure): value for measure, value in theirs.items()}
    ours = score_run(run, qrels, list(THEIR_NAMES))
    for name, their_name in THEIR_NAMES.items():
        mean = sum(ours[name].values()) / len(qrels)
        assert mean == pytest.approx(by_name[their_name], abs=1e-9), name


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    run = {"1": {"a": 0.1 + 0.2, "b": 1e-30}}
    (tmp_path / "run").write_text("\n".join(run_lines(run, "x")))
    assert load_run(tmp_path / "run") == run
    (tmp_path / "qrels").write_text("\n".join(qrels_lines({"1": {"a": 2, "b": 0}})))
    assert load_qrels(tmp_path / "qrels") == {"1": {"a": 2, "b": 0}}


def test_ids_become_single_words() -> None:
    assert token("a b\t%\u3000\ud800") == "a%20b%09%25%E3%80%80%ED%A0%80"
    assert token("金鑰.md") == "金鑰.md"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 Q0 a 1 2.0 t\n1 Q0 a 2 1.0 t\n", r"run:2: document 'a' is there twice for query '1'"),
        ("1 Q0 a 1 nan t\n", "a number as score"),
    ],
)
def test_bad_runs(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run").write_text(text)
    with pytest.raises(DataError, match=message):
        load_run(tmp_path / "run")


def test_a_run_counts_to_the_depth() -> None:
    judgements = Judgements({}, {"1": {"c": 1}})
    run = {"1": {"a": 3.0, "b": 2.0, "c": 1.0}}
    measured = evaluate({}, judgements, metrics=["MAP"], depth=2, runs={"theirs": run})
    assert measured.runs[0].run == {"1": {"a": 3.0, "b": 2.0}}
    assert measured.runs[0].values["MAP"] == {"1": 0.0}
    assert DEFAULT_METRICS[0] == "nDCG@10"
