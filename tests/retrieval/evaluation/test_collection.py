"""The corpus of a BEIR folder as an index: kept, brought up to date, or thrown away."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.retrieval.evaluation.collection import collection_index
from likewise.retrieval.evaluation.configurations import parse_configurations, search_function
from likewise.retrieval.evaluation.evaluate import evaluate
from likewise.retrieval.evaluation.judgements import load_beir


def write_corpus(folder: Path, rows: dict[str, str]) -> None:
    lines = [json.dumps({"_id": id_, "title": "", "text": text}) for id_, text in rows.items()]
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def keys(folder: Path, keep: bool = True) -> list[str]:
    with collection_index(folder, encoder=HashEncoder(), keep=keep) as index, index.view() as view:
        return [row.key for row in view.documents() if row.passages]


def test_the_kept_index_follows_the_corpus(tmp_path: Path, cache: Path) -> None:
    write_corpus(tmp_path, {"1": "signing keys", "2": "backups", "3": ""})
    assert keys(tmp_path) == ["1", "2"]
    write_corpus(tmp_path, {"2": "backups", "4": "holidays"})
    assert keys(tmp_path) == ["2", "4"]
    assert len(list((cache / "collections").iterdir())) == 1
    with collection_index(tmp_path, encoder=HashEncoder(32)):
        assert len(list((cache / "collections").iterdir())) == 2


def test_an_index_that_is_not_kept(tmp_path: Path, cache: Path) -> None:
    write_corpus(tmp_path, {"1": "signing keys"})
    assert keys(tmp_path, keep=False) == ["1"]
    assert not cache.exists() or not list(cache.glob("collections/*"))


def test_a_collection_is_evaluated(data_dir: Path) -> None:
    folder = data_dir / "adi"
    with collection_index(folder, encoder=HashEncoder(), keep=False) as index:
        searches = {each.name: search_function(index, each) for each in parse_configurations("lexical")}
        measured = evaluate(searches, load_beir(folder), metrics=["nDCG@10"])
    assert 0.42 < measured.runs[0].interval("nDCG@10").mean < 0.60
