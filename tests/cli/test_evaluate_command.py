"""`likewise evaluate`: every source of questions, every output, and what is refused."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import Result

from likewise.cli.evaluation_output import print_evaluation
from likewise.cli.output import Format
from likewise.cli.terminal import Screen
from likewise.retrieval.evaluation.evaluate import evaluate
from likewise.retrieval.evaluation.judgements import Judgements, load_qrels
from likewise.retrieval.evaluation.subjects import Subject
from likewise.retrieval.evaluation.trec import load_run

Run = Callable[..., Result]

QUESTIONS = """question,file,line,id
how often are signing keys rotated,keys.md,7,keys
"when do ""backups"" run",backups.md,,backups
備份何時運行,zh/备份.md,,zh
"""


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.csv"
    path.write_text(QUESTIONS, encoding="utf-8")
    return path


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    folder = tmp_path / "col"
    (folder / "qrels").mkdir(parents=True)
    texts = {"a": "signing keys rotate yearly", "b": "backups run at night", "c": "lunch is at noon"}
    rows = [json.dumps({"_id": id_, "title": "", "text": text}) for id_, text in texts.items()]
    (folder / "corpus.jsonl").write_text("\n".join(rows))
    asked = {"q1": "how often do signing keys rotate", "q2": "when do backups run", "q3": "<b>lunch</b> & co"}
    (folder / "queries.jsonl").write_text(
        "\n".join(json.dumps({"_id": id_, "text": text}) for id_, text in asked.items())
    )
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\tb\t2\nq3\tb\t1\n")
    return folder


def figures(result: Result) -> dict[tuple[str, str], float]:
    header, *rows = csv.reader(result.stdout.partition("\n\n")[0].splitlines(), delimiter="\t")
    assert header == ["configuration", "metric", "mean", "low", "high", "p"]
    assert all(len(row) == len(header) for row in rows)
    return {(row[0], row[1]): float(row[2]) for row in rows}


def test_questions_about_an_index(run: Run, questions: Path) -> None:
    result = run(
        "evaluate", "--questions", str(questions), "--compare", "lexical", "--metrics", "mrr,success@1"
    )
    assert result.exit_code == 0, result.output
    assert set(figures(result)) == {("lexical", "MRR@10"), ("lexical", "success@1")}
    assert figures(result)["lexical", "MRR@10"] == 1.0


def test_a_collection(run: Run, collection: Path) -> None:
    result = run("evaluate", str(collection), "--split", "dev", "--encoder", "hash", "--failures", "1")
    assert result.exit_code == 0, result.output
    found = figures(result)
    assert found["lexical", "success@1"] == pytest.approx(2 / 3, abs=1e-4)
    assert ("hybrid - dense", "nDCG@10") in found
    header, failure = result.stdout.partition("\n\n")[2].splitlines()
    assert header == "configuration\tnDCG@10\tquestion\texpected\tfound"
    assert failure.split("\t")[2:4] == ["<b>lunch</b> & co", "b"]


def test_json_is_exactly_this(run: Run, collection: Path) -> None:
    result = run(
        *("evaluate", str(collection), "--split", "dev", "--encoder", "hash", "--json"),
        *("--compare", "lexical,hybrid", "--metrics", "ndcg,map"),
    )
    shown = json.loads(result.stdout)
    assert list(shown) == ["version", "queries", "runs", "comparisons"]
    assert (shown["version"], shown["queries"]) == (1, 3)
    assert [list(each) for each in shown["runs"]] == [["name", "metrics"]] * 2
    assert shown["runs"][0]["name"] == "lexical"
    assert list(shown["runs"][0]["metrics"]) == ["nDCG@10", "MAP"]
    assert list(shown["runs"][0]["metrics"]["nDCG@10"]) == ["mean", "low", "high"]
    assert [(row["first"], row["second"], row["metric"]) for row in shown["comparisons"]] == [
        ("lexical", "hybrid", "nDCG@10"),
        ("lexical", "hybrid", "MAP"),
    ]


def test_saved_files_give_the_same_figures_elsewhere(run: Run, collection: Path, tmp_path: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    result = run(
        *("evaluate", str(collection), "--split", "dev", "--encoder", "hash", "--metrics", "ndcg,map"),
        *("--save-run", str(tmp_path / "run.txt"), "--save-qrels", str(tmp_path / "qrels.txt")),
    )
    assert result.exit_code == 0, result.output
    for name in ("dense", "lexical", "hybrid"):
        theirs = ir_measures.calc_aggregate(
            [ir_measures.nDCG @ 10, ir_measures.AP],
            list(ir_measures.read_trec_qrels(str(tmp_path / "qrels.txt"))),
            list(ir_measures.read_trec_run(str(tmp_path / f"run.{name}.txt"))),
        )
        ours = figures(result)
        assert ours[name, "nDCG@10"] == pytest.approx(theirs[ir_measures.nDCG @ 10], abs=1e-4)
        assert ours[name, "MAP"] == pytest.approx(theirs[ir_measures.AP], abs=1e-4)
    assert load_qrels(tmp_path / "qrels.txt") == load_qrels(collection / "qrels" / "dev.tsv")
    again = run(
        *("evaluate", "--qrels", str(tmp_path / "qrels.txt"), "--metrics", "ndcg,map"),
        *("--run", str(tmp_path / "run.dense.txt"), "--run", str(tmp_path / "run.hybrid.txt")),
    )
    assert figures(again)["run.hybrid", "MAP"] == figures(result)["hybrid", "MAP"]
    assert figures(again)["run.hybrid - run.dense", "MAP"] == figures(result)["hybrid - dense", "MAP"]


def test_a_run_beside_our_own_searches(run: Run, collection: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs.txt").write_text("q1 Q0 c 1 1.0 t\nq2 Q0 b 1 1.0 t\n")
    result = run(
        *("evaluate", str(collection), "--split", "dev", "--encoder", "hash", "--metrics", "success@1"),
        *("--run", str(tmp_path / "theirs.txt"), "--compare", "lexical"),
    )
    assert figures(result)["theirs", "success@1"] == pytest.approx(1 / 3, abs=1e-4)
    assert figures(result)["lexical - theirs", "success@1"] == pytest.approx(1 / 3, abs=1e-4)
    assert "lacks 1 of 3 judged queries" in result.stderr


def test_csv_and_questions(run: Run, questions: Path, tmp_path: Path) -> None:
    out, again = tmp_path / "out.csv", tmp_path / "again.csv"
    result = run(
        *("evaluate", "--questions", str(questions), "--compare", "lexical,dense", "--metrics", "ndcg"),
        *("--csv", str(out), "--save-questions", str(again)),
    )
    assert result.exit_code == 0, result.output
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["run", "query_id", "query", "nDCG@10", "seconds"]
    assert [(row["run"], row["query_id"]) for row in rows[:4]] == [
        ("lexical", "keys"),
        ("lexical", "backups"),
        ("lexical", "zh"),
        ("dense", "keys"),
    ]
    assert rows[1]["query"] == 'when do "backups" run'
    second = run("evaluate", "--questions", str(again), "--compare", "lexical,dense", "--metrics", "ndcg")
    assert figures(second) == figures(result)


def test_questions_from_documents_leave_the_index_alone(run: Run, indexed: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in (indexed / ".likewise").iterdir()}
    result = run(
        *("evaluate", "--questions-from-documents", "3", "--save-questions", str(tmp_path / "q.csv")),
        *("--compare", "lexical", "--jsonl"),
    )
    assert result.exit_code == 0, result.output
    shown = [json.loads(line) for line in result.stdout.splitlines()]
    assert list(shown[0]) == ["version", "run", "query_id", "query", "metrics", "rank", "expected", "found"]
    with (tmp_path / "q.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["question"] for row in rows] == [each["query"] for each in shown]
    for row in rows:
        text = (indexed / row["file"]).read_text(encoding="utf-8")
        if row["line"]:
            assert row["question"] in text.splitlines()[int(row["line"]) - 1]
    assert before == {path.name: path.read_bytes() for path in (indexed / ".likewise").iterdir()}


class _Tags(HTMLParser):
    """Checks that tags are balanced, and collects what is loaded or run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.active: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if (
            tag in ("script", "img", "link", "iframe")
            or "src" in values
            or any(n.startswith("on") for n in values)
        ):
            self.active.append(tag)
        if tag == "a":
            self.links.append(values["href"] or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(path: Path) -> _Tags:
    tags = _Tags()
    tags.feed(path.read_text(encoding="utf-8"))
    assert tags.open == []
    assert tags.active == []
    return tags


def test_the_report_loads_nothing_and_escapes_everything(run: Run, collection: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = run("evaluate", str(collection), "--split", "dev", "--encoder", "hash", "--html", str(page))
    assert result.exit_code == 0, result.output
    tags = parsed(page)
    assert "<b>lunch</b> & co" in tags.text
    assert not re.search(r"https?://|url\(|@import", page.read_text(encoding="utf-8"))
    assert page.read_text(encoding="utf-8").count("<svg") == 4  # recall, and three pairs
    assert "hash, fingerprint" in tags.text


def test_the_report_links_to_files(run: Run, indexed: Path, tmp_path: Path) -> None:
    page, questions = tmp_path / "report.html", tmp_path / "wrong.csv"
    questions.write_text("question,file\nhow often are keys rotated,zh/备份.md\n", encoding="utf-8")
    run(
        "evaluate",
        "--questions",
        str(questions),
        "--compare",
        "dense",
        "--html",
        str(page),
        "--failures",
        "3",
    )
    links = parsed(page).links
    assert links
    assert set(links) <= {path.as_uri() for path in indexed.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        ([], "expected one of a FOLDER, --questions, --questions-from-documents, --qrels, found none", 2),
        (["COL", "--questions", "Q"], "found a FOLDER and --questions", 2),
        (["--qrels", "Q"], "found no --run", 2),
        (["COL"], "expected qrels/test.tsv or qrels.test.tsv or qrels.tsv", 1),
        (["COL", "--split", "dev", "--metrics", "ndgc"], "unknown metric 'ndgc'", 2),
        (["COL", "--split", "dev", "--metrics", "recall@500"], "looks deeper than the 100 documents", 2),
        (["COL", "--split", "dev", "--compare", "hybird"], "found 'hybird'", 2),
        (["COL", "--split", "dev", "--fusion", "none"], "expected a fusion rule", 2),
        (["COL", "--split", "dev", "--compare", "hybrid+rerank"], "try: --reranker NAME", 2),
        (["COL", "--split", "dev", "--index", "HANDBOOK"], "none of the 2 documents", 1),
        (["--questions", "Q", "--encoder", "hash:32"], "was made with the encoder hash, not with hash:32", 1),
        (["--questions", "EMPTY"], "expected the columns question and file, found none", 1),
        (["--questions", "MISSING"], "cannot be read", 1),
        (["MISSING"], "expected a folder with queries", 1),
        (["--questions", "Q", "--run", "EMPTY"], "no results found", 1),
        (["--questions-from-documents", "0"], "0 is not in the range", 2),
        (["--questions", "Q", "--html", "MISSING/x/y.html"], "cannot be written", 1),
    ],
)
def test_what_is_refused(
    arguments: list[str],
    message: str,
    status: int,
    run: Run,
    indexed: Path,
    questions: Path,
    collection: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "empty.csv").write_text("")
    names = {
        "COL": collection,
        "Q": questions,
        "EMPTY": tmp_path / "empty.csv",
        "MISSING": tmp_path / "missing",
        "HANDBOOK": indexed,
    }
    spelled = [
        str(names[word]) if word in names else word.replace("MISSING", str(names["MISSING"]))
        for word in arguments
    ]
    if "COL" in arguments and "--index" not in arguments:
        spelled += ["--encoder", "hash"]
    result = run("evaluate", *spelled)
    assert result.exit_code == status, result.output
    assert message in result.stderr
    assert result.stdout == ""


def test_the_split_that_exists_is_named(run: Run, collection: Path) -> None:
    assert "try: --split dev" in run("evaluate", str(collection), "--encoder", "hash").stderr


def test_the_table_of_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("likewise.cli.evaluation_output.screen", lambda: Screen(True, 100, False))
    runs = {"one": {"1": {"a": 1.0, "b": 0.5}}, "two": {"1": {"b": 1.0, "a": 0.5}}}
    judgements = Judgements({"1": "why?"}, {"1": {"a": 1}})
    measured = evaluate({}, judgements, metrics=["mrr@10", "success@1"], runs=runs)
    print_evaluation(measured, Subject("set", judgements), Format.TEXT, failures=1)
    assert capsys.readouterr().out.splitlines() == [
        "set: 1 question",
        "           one                   two",
        "MRR@10     1.000 [1.000, 1.000]  .500 [.500, .500]",
        "success@1  1.000 [1.000, 1.000]  .000 [.000, .000]",
        "",
        "two and one: no difference in MRR@10 that chance would not make (-.500 [-.500, -.500], p = 1)",
    ]


def test_a_run_file_names_the_run(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("1 Q0 a 1 1.0 t\n")
    assert load_run(tmp_path / "r.txt") == {"1": {"a": 1.0}}
