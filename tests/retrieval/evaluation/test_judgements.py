"""Every form that questions and judgements come in, and what is wrong with malformed ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from likewise.errors import DataError
from likewise.retrieval.evaluation.judgements import (
    CorpusDocument,
    corpus,
    load_beir,
    load_qrels,
)
from likewise.retrieval.evaluation.questions import load_questions
from likewise.retrieval.evaluation.trec import load_run


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def jsonl(*rows: dict[str, object]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("qrels", ["qrels.tsv", "qrels/test.tsv"])
def test_beir_folder(tmp_path: Path, suffix: str, qrels: str) -> None:
    write(
        tmp_path / f"queries.jsonl{suffix}",
        jsonl({"_id": "1", "text": "備份"}, {"_id": "2", "text": "unjudged"}),
    )
    write(
        tmp_path / f"corpus.jsonl{suffix}",
        jsonl({"_id": "a", "title": "T", "text": "x"}, {"_id": "b", "text": ""}),
    )
    write(tmp_path / qrels, "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\n")
    judgements = load_beir(tmp_path)
    assert judgements.queries == {"1": "備份"}
    assert judgements.qrels == {"1": {"a": 2, "b": 0}}
    assert list(corpus(tmp_path)) == [CorpusDocument("a", "T", "x"), CorpusDocument("b", "", "")]


def test_another_split(tmp_path: Path) -> None:
    write(tmp_path / "queries.jsonl", jsonl({"_id": "1", "text": "q"}))
    write(tmp_path / "qrels.train.tsv", "query-id\tcorpus-id\tscore\n1\ta\t1\n")
    assert load_beir(tmp_path, split="train").qrels == {"1": {"a": 1}}
    with pytest.raises(DataError, match=r"expected qrels/test\.tsv or qrels\.test\.tsv or qrels\.tsv"):
        load_beir(tmp_path)


def test_qrels_of_unknown_queries_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "queries.jsonl", jsonl({"_id": "1", "text": "q"}))
    write(tmp_path / "qrels.tsv", "query-id\tcorpus-id\tscore\n1\ta\t1\n7\ta\t1\n")
    with pytest.raises(DataError, match="'7'"):
        load_beir(tmp_path)


def test_trec_files(tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels.txt", "1 0 docA 1\n1 0 docB 0\n2 0 docC -1\n")
    run = write(tmp_path / "run.txt", "1 Q0 docB 1 2.5 tag\n1 Q0 docA 2 2.5e-1 tag\n\n")
    assert load_qrels(qrels) == {"1": {"docA": 1, "docB": 0}, "2": {"docC": -1}}
    assert load_run(run) == {"1": {"docB": 2.5, "docA": 0.25}}


@pytest.mark.parametrize(
    ("text", "message"),
    [("1 0 a 1\nx\n", "columns"), ("1\ta\tgood\n", "whole number"), ("", "no judgements")],
)
def test_malformed_qrels(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_qrels(write(tmp_path / "q", text))


@pytest.mark.parametrize(
    ("text", "message"),
    [("1 Q0 a 1 2.0\n", "6 columns"), ("1 Q0 a 1 high t\n", "a number"), ("\n", "no results")],
)
def test_malformed_runs(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_run(write(tmp_path / "r", text))


def test_questions_with_places(tmp_path: Path) -> None:
    rows = [
        "Question,File,Page,Line,grade",
        "鑰匙多久換一次？,a\\b.md,,12,2",
        "鑰匙多久換一次？,c.pdf,3,,",
        "How?,d.md,,,",
    ]
    judgements = load_questions(write(tmp_path / "q.csv", "\n".join(rows)))
    assert judgements.qrels == {
        "鑰匙多久換一次？": {"a/b.md#line=12": 2, "c.pdf#page=3": 1},
        "How?": {"d.md": 1},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q,f\na,b\n", "expected the columns question and file"),
        ("question,file\n,b\n", r"q\.csv:2: a row needs"),
        ("question,file,line\na,b,x\n", "whole number as line"),
        ("question,file\n", "no questions"),
    ],
)
def test_malformed_questions(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_questions(write(tmp_path / "q.csv", text))


def test_malformed_rows_are_named(tmp_path: Path) -> None:
    write(tmp_path / "corpus.jsonl", '{"_id": "a", "text": "x"}\nnot json\n')
    with pytest.raises(DataError, match=r"corpus\.jsonl:2: not JSON"):
        list(corpus(tmp_path))
    write(tmp_path / "corpus.jsonl", '{"_id": 3, "text": "x"}\n')
    with pytest.raises(DataError, match="_id is missing"):
        list(corpus(tmp_path))
