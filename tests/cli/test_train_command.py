"""`likewise train` on a tiny encoder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from likewise.cli.main import cli
from likewise.cli.train_data import LOSSES as OFFERED
from likewise.embedder.siamese.tasks import LOSSES

from ..tiny_bert import save_tiny_bert


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="likewise")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with a vocabulary of its own."""
    from tokenizers import BertWordPieceTokenizer

    words = BertWordPieceTokenizer()
    words.train_from_iterator(
        [f"key lock door {n} 金鑰" for n in range(40)], vocab_size=120, show_progress=False
    )
    return save_tiny_bert(tmp_path_factory.mktemp("encoder"), words, max_tokens=32)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    lines = [f"door {n} key,lock {n}" for n in range(20)]
    path.write_text("claim,positive\n" + "\n".join(lines), "utf-8")
    return path


QUICK = ("--precision", "float32", "--device", "cpu", "--batch-size", 8)


def test_losses_are_all_offered() -> None:
    assert tuple(LOSSES) == OFFERED


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_json(encoder: Path, pairs: Path, tmp_path: Path) -> None:
    result = run(
        *("train", f"ranking={pairs}@2", "--column", "anchor=claim", "--encoder", encoder),
        *("-o", tmp_path / "model", "--held-out", 0.2, *QUICK, "--json"),
    )
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert (value["status"], value["steps"], value["rows"]) == ("finished", 4, {"pairs": 16})
    assert value["metric"] == "pairs-held-out.mrr" and len(value["metrics"][value["metric"]]["gain"]) == 3
    assert value["kept"] in ("base", "trained") and value["outcome"] != "not measured"
    assert (tmp_path / "model" / "modules.json").is_file()
    shown = run("embed", "key", "--encoder", tmp_path / "model", "--json")
    assert json.loads(shown.stdout)["dimension"] == 16


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_text(encoder: Path, tmp_path: Path) -> None:
    scored = tmp_path / "scored.tsv"
    lines = [f"{n % 6}\tdoor {n}\tlock {n}" for n in range(12)]
    scored.write_text("score\tsentence1\tsentence2\n" + "\n".join(lines), "utf-8")
    arguments = ("train", scored, "--loss", "cosine", "--encoder", encoder, "-o", tmp_path / "m", *QUICK)
    refused = run(*arguments)
    assert refused.exit_code == 1
    assert "from -1 to 1" in refused.stderr and "--score-range 0 5" in refused.stderr
    result = run(*arguments, "--score-range", 0, 5, "--eval", scored, "--keep-worse")
    assert result.exit_code == 0, result.output
    assert "finished after 2 steps" in result.stdout and "scored.spearman: " in result.stdout
    assert "12 held-out rows stand in the training data too" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--steps", 1, "--minutes", 1), 2, "one of --steps, --epochs and --minutes"),
        (("--column", "claim"), 2, "expected [DATA:]ROLE=..., found 'claim'"),
        (("x*distillation=texts.txt",), 2, "expected a number in front of the loss"),
        (("0*distillation=texts.txt",), 2, "expected a finite factor above 0"),
        ((), 1, "found no anchor among claim, positive"),
        (("--column", "anchor=claims"), 1, "expected a column 'claims', found claim, positive"),
        (("--column", "anchor=claim", "--loss", "cosent"), 1, "needs the columns anchor, positive, label"),
        (("--column", "anchor=claim", "--accumulate", 2), 2, "compares the examples of a batch"),
        (("--column", "anchor=claim", "--batch-size", 1), 1, "nothing to compare with"),
        (("--column", "anchor=claim", "--matryoshka", 17), 2, "from 1 to 16"),
        (("--column", "anchor=claim", "--freeze", 1), 2, "0 to 0 layers"),
        (("--column", "anchor=claim", "--watch", "ndcg", "--held-out", 0), 2, "nothing is held out"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_wrong_requests(
    encoder: Path, pairs: Path, tmp_path: Path, arguments: tuple[object, ...], status: int, message: str
) -> None:
    result = run("train", pairs, "--encoder", encoder, "-o", tmp_path / "m", *QUICK, *arguments)
    assert message in result.stderr
    assert result.exit_code == status


@pytest.mark.parametrize("command", ["train", "distill", "pretrain"])
def test_a_folder_of_other_files_is_left_alone(
    encoder: Path, pairs: Path, tmp_path: Path, command: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "README.md").write_text("Mine.")
    data = {"train": (pairs,), "distill": (encoder, pairs), "pretrain": (pairs,)}[command]
    result = run(command, *data, "-o", project)
    assert result.exit_code == 2 and "found" in result.stderr and "with other files" in result.stderr
    assert [path.name for path in project.iterdir()] == ["README.md"]
    assert (project / "README.md").read_text() == "Mine."


def test_a_model_is_not_trained_onto_itself(encoder: Path, pairs: Path, tmp_path: Path) -> None:
    for arguments in (("train", pairs, "--encoder", encoder), ("distill", encoder, pairs, "--static")):
        result = run(*arguments, "-o", encoder)
        assert result.exit_code == 2 and "another folder for the result" in result.stderr


def test_a_missing_file(tmp_path: Path) -> None:
    result = run("train", tmp_path / "none.csv", "-o", tmp_path / "m")
    assert result.exit_code == 1 and "there is no file" in result.stderr


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    folder = tmp_path / "doors"
    folder.mkdir()
    documents = [json.dumps({"_id": str(n), "title": "", "text": f"lock {n}"}) for n in range(30)]
    (folder / "corpus.jsonl").write_text("\n".join(documents))
    queries = [json.dumps({"_id": f"q{n}", "text": f"door {n} key"}) for n in range(6)]
    (folder / "queries.jsonl").write_text("\n".join(queries))
    (folder / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "\n".join(f"q{n}\t{n}\t1" for n in range(6))
    )
    return folder


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_ranking_decides(encoder: Path, pairs: Path, collection: Path, tmp_path: Path) -> None:
    result = run(
        *("train", pairs, "--column", "anchor=claim", "--encoder", encoder, "-o", tmp_path / "m", *QUICK),
        *("--evaluate-ranking", collection, "--ranking-documents", 10, "--json"),
    )
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert value["metric"] == "doors.ndcg@10"
    assert list(value["metrics"]) == ["doors.ndcg@10", "pairs-held-out.mrr", "pairs-held-out.accuracy"]
    assert "ranking 10 of 30 documents" in result.stderr
    wrong = run("train", pairs, "--encoder", encoder, "--evaluate-ranking", tmp_path, "-o", tmp_path / "n")
    assert wrong.exit_code == 1 and "queries.jsonl" in wrong.stderr


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_columns_and_prompts_of_one_data_set_and_of_the_model(
    encoder: Path, pairs: Path, tmp_path: Path
) -> None:
    other = tmp_path / "scored.csv"
    other.write_text("sentence1,sentence2,score\n" + "\n".join(f"key {n},lock {n},{n / 9}" for n in range(9)))
    arguments = (
        *("train", f"ranking={pairs}", f"cosent={other}@2", "--encoder", encoder, "-o", tmp_path / "m"),
        *("--column", "pairs:anchor=claim", "--prompt", "scored:anchor=door: ", *QUICK),
    )
    result = run(*arguments, "--query-prompt", "key: ", "--keep-worse", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["rows"] == {"pairs": 18, "scored": 9}
    saved = json.loads((tmp_path / "m" / "config_sentence_transformers.json").read_text())
    assert saved["prompts"] == {"query": "key: ", "document": ""}
    unknown = run(*arguments, "--column", "stsb:anchor=claim")
    assert unknown.exit_code == 2 and "about data called stsb, and there are pairs, scored" in unknown.stderr
    missing = run(*arguments[:-6], "--prompt", "scored:negative_1=x", "--column", "pairs:anchor=claim")
    assert missing.exit_code == 2 and "a prompt is given for the column 'negative_1'" in missing.stderr


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("loss", ["simcse", "tsdae", "distillation"])
def test_texts_alone(encoder: Path, tmp_path: Path, loss: str) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(f"door {n} key 金鑰\n" for n in range(12)), "utf-8")
    teacher = ("--teacher", "hash:16") if loss == "distillation" else ()
    result = run(
        *("train", f"5*{loss}={texts}", *teacher, "--encoder", encoder, "-o", tmp_path / "m", *QUICK)
    )
    assert result.exit_code == 0, result.output
    assert "finished after 2 steps" in result.stdout and "is not known" in result.stdout
    assert (tmp_path / "m" / "modules.json").is_file()
    assert f"| losses | texts: 5 x {loss} |" in (tmp_path / "m" / "README.md").read_text("utf-8")


def test_frozen_layers_that_are_kept_must_be_frozen(encoder: Path, pairs: Path, tmp_path: Path) -> None:
    result = run("train", pairs, "--encoder", encoder, "-o", tmp_path / "m", "--cache-frozen", *QUICK)
    assert result.exit_code == 2 and "--freeze N --cache-frozen" in result.stderr


def _rows(loss: str) -> list[dict[str, object]]:
    """Twelve rows that suit a loss."""
    kind = LOSSES[loss]
    rows: list[dict[str, object]] = []
    for n in range(12):
        row: dict[str, object] = {role: f"{role[0]} {n} key" for role in kind.roles}
        if kind.label != "none":
            values = {"score": n / 11, "order": n, "binary": n % 2, "class": n % 3, "margins": [n / 10]}
            row["label"] = values[kind.label]
        rows.append(row)
    return rows


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_loss(encoder: Path, tmp_path: Path, loss: str) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("\n".join(map(json.dumps, _rows(loss))), "utf-8")
    teacher = ("--teacher", "hash:16") if LOSSES[loss].teacher else ()
    constants = ("--distance", "euclidean", "--features", "u,v", "--deleted", 0.5, "--measure", "cosine")
    result = run(
        *("train", data, "--loss", loss, "--encoder", encoder, "-o", tmp_path / "m", *QUICK, *teacher),
        *(*constants, "--held-out", 0, "--json"),
    )
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert (value["status"], value["steps"], value["outcome"]) == ("finished", 2, "not measured")
    found = run("embed", "key", "--encoder", tmp_path / "m", "--json")
    assert json.loads(found.stdout)["dimension"] == 16


@pytest.mark.parametrize(
    ("rows", "arguments", "message"),
    [
        ([{"anchor": "a", "positive": "b"}], (), "needs at least two rows, found 1"),
        ([{"anchor": "a", "positive": "a"}] * 9, (), "all texts are the same"),
        ([{"anchor": "a", "positive": " "}, {"anchor": "b", "positive": "c"}], (), "--skip-empty"),
        ([{"anchor": "a", "positive": "b", "label": 3.0}] * 2, ("--loss", "cosine"), "from -1 to 1"),
        ([{"anchor": "a", "positive": "b", "label": 2}] * 2, ("--loss", "contrastive"), "a label 0 or 1"),
        ([{"anchor": "a", "positive": "b", "label": "nan"}] * 2, ("--loss", "cosent"), "finite numbers"),
        ([{"anchor": "a", "positive": "b", "label": 7}] * 2, ("--loss", "softmax"), "count from 0"),
        ([{"anchor": "a", "positive": "b", "label": 1}] * 2, (), "would ignore the column 'label'"),
        ([{"positive": "b"}] * 2, (), "found no anchor among positive"),
        ([], (), "expected at least one row"),
        ([{"anchor": "a", "query": "x", "positive": "b"}] * 2, (), "could both be the anchor"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_data_that_cannot_be_right(
    encoder: Path, tmp_path: Path, rows: list[dict[str, object]], arguments: tuple[str, ...], message: str
) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    result = run("train", data, *arguments, "--encoder", encoder, "-o", tmp_path / "m", *QUICK)
    assert message in result.stderr and result.exit_code == 1
    assert not (tmp_path / "m" / "modules.json").exists()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_one_row_is_enough_where_rows_stand_alone(encoder: Path, tmp_path: Path) -> None:
    data = tmp_path / "one.jsonl"
    data.write_text(json.dumps({"anchor": "key", "positive": "lock", "score": 0.5}))
    result = run("train", data, "--loss", "cosine", "--encoder", encoder, "-o", tmp_path / "m", *QUICK)
    assert result.exit_code == 0, result.output
    assert "finished after 1 steps" in result.stdout and "too few unrelated rows" in result.stderr


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_loss_that_explodes(encoder: Path, pairs: Path, tmp_path: Path) -> None:
    result = run(
        *("train", pairs, "--column", "anchor=claim", "--encoder", encoder, "-o", tmp_path / "m", *QUICK),
        *("--lr", 1e30, "--epochs", 5),
    )
    assert result.exit_code == 1 and "training stopped at step" in result.stderr
    assert not (tmp_path / "m" / "modules.json").exists()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_was_trained_indexes_a_folder(encoder: Path, pairs: Path, tmp_path: Path) -> None:
    arguments = ("--column", "anchor=claim", "--encoder", encoder, "--freeze", 0, "--keep-worse", *QUICK)
    assert run("train", pairs, "-o", tmp_path / "m", *arguments).exit_code == 0
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "doors.md").write_text("# Doors\n\nThe key of door 7 hangs beside lock 7.\n")
    assert run("index", folder, "--encoder", tmp_path / "m").exit_code == 0
    found = run("search", "door 7", "--index", folder / ".likewise", "--mode", "dense", "--json")
    assert [hit["path"] for hit in json.loads(found.stdout)["hits"]] == ["doors.md"]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_run_that_is_stopped_goes_on(
    encoder: Path, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import signal

    from likewise.cli.training import Watch
    from likewise.embedder.events import Evaluated, Event

    arguments = ("train", pairs, "--column", "anchor=claim", "--encoder", encoder, *QUICK, "--epochs", 3)
    arguments = (*arguments, "--part-tokens", 40, "--keep-worse", "-o")
    show = Watch.__call__

    def stop(self: Watch, event: Event) -> None:
        show(self, event)
        if isinstance(event, Evaluated) and event.step:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Watch, "__call__", stop)
        stopped = run(*arguments, tmp_path / "m")
    assert stopped.exit_code == 130 and "the same command goes on from there" in stopped.stderr
    assert not (tmp_path / "m" / "modules.json").exists()
    again = run(*arguments, tmp_path / "m")
    assert again.exit_code == 0 and "going on from step" in again.stderr
    assert run(*arguments, tmp_path / "whole").exit_code == 0
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("m", "whole")]
    assert weights[0] == weights[1]
