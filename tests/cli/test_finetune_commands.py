"""The guide's use: two CSV files of reviews, a model, a sentence; on a tiny model, frozen and whole."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from likewise.cli.main import cli
from likewise.embedder.run_lock import only_run


def run(*arguments: object, **options: object) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CliRunner().invoke(cli, [str(argument) for argument in arguments], **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("encoder")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "great", "bad", "awful", "film", "plot", "was"]
    words += ["the", "好", "壞"]
    tokenizer = Tokenizer(models.WordPiece({w: n for n, w in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep")}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=32, **names).save_pretrained(folder)
    import torch

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
        initializer_range=0.3,
        hidden_dropout_prob=0.0,
    )
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def imdb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imdb")
    for name, count in (("train", 60), ("test", 20)):
        lines = ["text,label"]
        for number in range(count):
            word, label = (
                (("good", "great", "好")[number % 3], "Positive")
                if number % 2
                else (("bad", "awful", "壞")[number % 3], "Negative")
            )
            lines.append(f'"{word} film, {"the plot was " * (number % 3)}",{label}')
        (folder / f"{name}.csv").write_text("\n".join(lines), "utf-8")
    return folder


@pytest.mark.parametrize("more", [["--freeze"], ["--lr", "5e-3", "--epochs", "25", "--long-text", "windows"]])
def test_sentiment_as_in_the_guide(encoder: Path, imdb: Path, tmp_path: Path, more: list[str]) -> None:
    model = tmp_path / "sentiment"
    done = run("finetune", "classify", imdb, "-o", model, "-m", encoder, "--precision", "float32", *more)
    assert done.exit_code == 0, done.output
    assert "labels: Negative 27, Positive 27" in done.stderr
    assert "columns: text: text; label: label" in done.stderr
    assert "test, 20 examples, with 95% intervals" in done.stdout
    metrics = json.loads((model / "metrics.json").read_text("utf-8"))
    assert metrics["scores"][-1]["metrics"]["accuracy"] >= 0.9

    found = run("predict", model, "good film", "壞 film", "--jsonl")
    assert found.exit_code == 0, found.output
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert [row["label"] for row in rows] == ["Positive", "Negative"]
    assert rows[0]["probability"] == max(rows[0]["probabilities"].values())
    assert all(len(line) <= 200 for line in run("predict", model, "good " * 99).stdout.splitlines())
    table = run("predict", model, "--file", imdb / "test.csv", "--json")
    assert len(json.loads(table.stdout)["predictions"]) == 20
    lines = run("predict", model, input="good film\n\nbad film\n")
    assert lines.stdout.startswith("Positive")
    assert len(lines.stdout.splitlines()) == 2


def test_a_run_reports_as_json(encoder: Path, imdb: Path, tmp_path: Path) -> None:
    done = run(
        "finetune", "classify", imdb / "train.csv", "--test", imdb / "test.csv", "-m", encoder, "-o",
        tmp_path / "m", "--epochs", "1", "--try-lr", "1e-3,1e-2", "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    value = json.loads(done.stdout)
    assert [run["learning_rate"] for run in value["runs"]] == [0.001, 0.01]
    assert [part["split"] for part in value["scores"]] == ["dev", "test"]


def test_a_folder_has_one_run_and_no_other_files(encoder: Path, imdb: Path, tmp_path: Path) -> None:
    command = ("finetune", "classify", imdb, "-m", encoder, "--epochs", "1", "--freeze", "-o")
    into_data = run(*command, imdb)
    assert into_data.exit_code == 2 and "expected a new folder for the model" in into_data.stderr
    over_itself = run(*command, encoder)
    assert over_itself.exit_code == 2 and "than that of a model it is made from" in over_itself.stderr
    with only_run(tmp_path / "m" / "training"):
        second = run(*command, tmp_path / "m")
    assert second.exit_code == 1 and "another process is training in" in second.stderr
    for _ in range(2):  # over its own result it may go again
        assert run(*command, tmp_path / "m").exit_code == 0
    assert not (tmp_path / "m" / "training" / "run.lock").exists()


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["finetune", "classify", "nowhere.csv"], "there is no file nowhere.csv", 1),
        (["finetune", "classify", "IMDB", "--head", "mlp"], "for a frozen encoder", 2),
        (["finetune", "classify", "IMDB", "--multi-label", "--regression"], "found both", 2),
        (["finetune", "classify", "IMDB", "--try-lr", "fast"], "learning rates separated by commas", 2),
        (["finetune", "pair", "IMDB"], "columns with a known name", 1),
        (["finetune", "classify", "IMDB", "--regression"], "expected a number in row 1", 1),
        (["predict", "IMDB", "x"], "expected a model with a head", 1),
        (["predict", "IMDB", "x", "--file", "y"], "found both", 2),
        (["predict", "nowhere", "x"], "there is no folder nowhere", 1),
        (["ask", "x", "--extractive"], "a model that finds answers for --extractive, found none", 2),
        (["ask", "x", "--extractive"], "likewise finetune qa squad.json -o reader", 2),
        (["ask", "x", "--extractive", "-m", "IMDB"], "expected a model with a head", 1),
        (["ask", "x", "-m", "IMDB"], "add --extractive", 2),
    ],
)
def test_wrong_usage_says_what_was_expected(
    imdb: Path, tmp_path: Path, arguments: list[str], message: str, status: int
) -> None:
    done = run(*[imdb if word == "IMDB" else word for word in arguments])
    assert message in done.stderr and done.exit_code == status


def squad(count: int) -> dict[str, object]:
    """Contexts in which the word behind "was" is the answer."""
    paragraphs = []
    for number in range(count):
        word = ("good", "great", "bad", "awful", "好", "壞")[number % 6]
        context = f"{'the plot ' * (number % 4)}film was {word}{' the plot' * (number % 3)}"
        answer = {"text": word, "answer_start": context.index(word)}
        asked = {"id": str(number), "question": "was film", "answers": [answer]}
        paragraphs.append({"title": str(number), "paragraphs": [{"context": context, "qas": [asked]}]})
    return {"version": "1.1", "data": paragraphs}


def test_a_reader_answers_over_an_index(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "squad.json").write_text(json.dumps(squad(60)), "utf-8")
    done = run(
        "finetune", "qa", tmp_path / "squad.json", "-m", encoder, "-o", tmp_path / "reader",
        "--lr", "1e-2", "--epochs", "40", "--batch", "8", "--precision", "float32",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    asked = run(
        "predict", tmp_path / "reader", "--question", "was film", "--context", "the plot film was awful"
    )
    assert asked.stdout.startswith("awful"), asked.output

    for name in ("LIKEWISE_INDEX", "LIKEWISE_READER", "LIKEWISE_BASE_URL", "LIKEWISE_MODEL"):
        monkeypatch.delenv(name, raising=False)
    handbook = tmp_path / "handbook"
    handbook.mkdir()
    (handbook / "a.md").write_text("# Plots\n\nthe plot\n\nthe plot film was awful\n", "utf-8")
    assert run("index", handbook, "--encoder", "hash").exit_code == 0
    monkeypatch.chdir(handbook)
    found = run("ask", "was film", "--extractive", "-m", tmp_path / "reader", "-k", "1")
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert lines[0].startswith("[1] awful  ") and lines[2].strip() == "a.md:5  Plots"
    monkeypatch.setenv("LIKEWISE_READER", str(tmp_path / "reader"))
    value = json.loads(run("ask", "was film", "--extractive", "--json").stdout)
    assert (value["version"], value["answer"]) == (1, "awful")
    guide = Path(__file__).resolve().parents[2] / "docs" / "formats-json.md"
    shown = guide.read_text("utf-8").partition("With `--extractive`")[2].partition("```json")[2]
    documented = json.loads(shown.partition("```")[0])
    assert documented.keys() == value.keys()
    assert documented["answers"][0].keys() == value["answers"][0].keys()
    line = json.loads(run("ask", "was film", "--extractive", "--jsonl").stdout.splitlines()[0])
    assert line["type"] == "answer" and line["lines"] == [5, 5]
    # The reader of the environment does not change what a plain question does.
    assert "no generator is configured" in run("ask", "was film").stderr
    nothing = run("ask", "was film", "--extractive", "--path", "nowhere/**")
    assert (nothing.exit_code, nothing.stdout) == (0, "") and nothing.stderr


HARD = """text,label
good film,Positive
,Positive
壞,Negative
LONG bad,Negative
great film,Positive
awful film,Negative
"""


def test_empty_long_and_chinese_texts_and_a_label_that_only_the_test_has(
    encoder: Path, tmp_path: Path
) -> None:
    text = HARD.replace("LONG", "the plot was " * 40)
    (tmp_path / "train.csv").write_text(text, "utf-8")
    (tmp_path / "test.csv").write_text("text,label\n好,Positive\nbad,Mixed\nLONG good,Positive\n", "utf-8")
    done = run(
        "finetune", "classify", tmp_path, "-m", encoder, "-o", tmp_path / "m", "--epochs", "1",
        "--dev-share", "0.4", "--class-weights", "--precision", "float32",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "train: 1 rows have an empty text; they are kept" in done.stderr
    assert "labels that the training data lack and that count as wrong: Mixed" in done.stderr
    assert "test, 3 examples" in done.stdout
    metrics = json.loads((tmp_path / "m" / "metrics.json").read_text("utf-8"))
    assert metrics["scores"][-1]["metrics"]["accuracy"] <= 2 / 3 + 1e-6
    long = "the plot was " * 40 + "good"
    rows = [
        json.loads(line) for line in run("predict", tmp_path / "m", "", long, "--jsonl").stdout.splitlines()
    ]
    assert len(rows) == 2 and all(row["label"] in ("Positive", "Negative") for row in rows)


def test_a_new_process_predicts_the_same(encoder: Path, imdb: Path, tmp_path: Path) -> None:
    import subprocess
    import sys

    model = tmp_path / "m"
    assert run("finetune", "classify", imdb, "-m", encoder, "-o", model, "--freeze").exit_code == 0
    texts = ["good film", "壞", "", "the plot was " * 50]
    here = run("predict", model, *texts, "--jsonl")
    command = [sys.executable, "-m", "likewise", "predict", str(model), *texts, "--jsonl"]
    there = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    assert there.stdout == here.stdout and len(here.stdout.splitlines()) == 4


TWO = "text,label\na,x\nb,y\n"
ALL = ["--dev-share", "0"]


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("one.csv", "text,label\na,x\nb,x\n", ALL, "at least two different labels to tell apart, found only"),
        ("nan.csv", "text,label\na,x\nb,NaN\n", [], "expected a label in every row"),
        ("nan.csv", "text,label\na,x\nb,NaN\n", [], "--skip-unlabelled"),
        ("ragged.csv", "text,label\na,x\nb,y,z\n", [], "expected 2 columns (text, label)"),
        ("other.csv", "words,kind\na,x\nb,y\n", [], "found words, kind"),
        ("named.csv", TWO, ["--text-column", "body"], "its columns are text, label"),
        ("empty.csv", "", [], "at least one row"),
        ("tiny.csv", TWO, [], "enough examples to hold out 10%"),
        ("what.docx", "x", [], "one of the suffixes"),
        ("rate.csv", TWO, ["--length", "4096", *ALL], "at most 32 tokens"),
        ("layers.csv", TWO, ["--freeze-layers", "9", *ALL], "at most 1 layers"),
    ],
)
def test_bad_data_says_what_mends_it(
    encoder: Path, tmp_path: Path, name: str, text: str, options: list[str], message: str
) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    done = run("finetune", "classify", tmp_path / name, "-m", encoder, "-o", tmp_path / "m", *options)
    assert done.exit_code in (1, 2) and message in done.stderr, done.output
    assert not (tmp_path / "m" / "config.json").exists()


def test_mismatched_columns_of_the_test_file(encoder: Path, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("body,kind\n" + "good,x\nbad,y\n" * 10, "utf-8")
    (tmp_path / "test.csv").write_text("text,label\ngood,x\n", "utf-8")
    done = run(
        "finetune", "classify", tmp_path, "-m", encoder, "--text-column", "body", "--label-column", "kind"
    )
    assert done.exit_code == 1
    assert "there is no column 'body'" in done.stderr and "test.csv" in done.stderr
