"""A judged collection ranked by vectors: against `evaluate` on an index, and with a part of the corpus."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import DataError, UsageError
from likewise.retrieval.evaluation.configurations import parse_configurations, search_function
from likewise.retrieval.evaluation.dense_ranking import DenseRanking
from likewise.retrieval.evaluation.evaluate import evaluate
from likewise.retrieval.evaluation.subjects import of_collection

WORDS = ["key", "lock", "door", "vault", "金鑰", "保險庫", "safe", "chain"]


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    folder = tmp_path / "words"
    folder.mkdir()
    generator = np.random.default_rng(0)
    documents = [
        {"_id": f"d{n}", "title": "", "text": " ".join(generator.choice(WORDS, 4))} for n in range(40)
    ]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)), "utf-8")
    queries = [{"_id": f"q{n}", "text": " ".join(generator.choice(WORDS, 2))} for n in range(9)]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)), "utf-8")
    grades = [f"q{n}\td{3 * n}\t2\nq{n}\td{3 * n + 1}\t1" for n in range(9)]
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(grades))
    return folder


def embed(texts, role):
    return HashEncoder().embed(texts, role=role).vectors


@pytest.mark.parametrize("metric", ["nDCG@10", "MRR@5", "recall@20"])
def test_equals_the_evaluation_of_an_index(collection, metric):
    [dense] = parse_configurations("dense")
    with of_collection(collection, encoder="hash", keep=False) as subject:
        searches = {"dense": search_function(subject.index, dense)}
        measured = evaluate(searches, subject.judgements, metrics=[metric])
    expected = measured.runs[0].values[measured.metrics[0]]
    ranking = DenseRanking(collection, metric=metric)
    assert ranking.name == "words" and ranking.documents == ranking.total == 40
    # Several documents have the same words; the index orders ties by passage, trec_eval by name.
    assert np.mean(ranking(embed)) == pytest.approx(np.mean(list(expected.values())), abs=0.1)
    assert len(ranking(embed)) == 9 and ranking(embed) == ranking(embed)


def test_judged_documents_always_take_part(collection):
    few = DenseRanking(collection, documents=5)
    assert few.documents == 18  # two answers of nine queries
    some = DenseRanking(collection, documents=25)
    assert some.documents == 25 and some.total == 40
    whole = np.mean(DenseRanking(collection)(embed))
    assert np.mean(few(embed)) >= np.mean(some(embed)) >= whole > 0


def test_bad_folders_and_metrics(collection, tmp_path):
    with pytest.raises(UsageError, match="looks deeper than the 100"):
        DenseRanking(collection, metric="recall@200")
    with pytest.raises(UsageError, match="metric"):
        DenseRanking(collection, metric="beauty")
    with pytest.raises(DataError, match="found none at"):
        DenseRanking(tmp_path / "none")
    (collection / "corpus.jsonl").unlink()
    with pytest.raises(DataError, match=r"corpus\.jsonl"):
        DenseRanking(collection)
