"""The commands that train, on a corpus that a tiny model learns in seconds."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from likewise.cli.main import cli
from likewise.index.readers.base import ReaderLimits

SENTENCES = ["The signing key rotates once a year.", "A backup runs every night.", "簽署金鑰每年輪替一次。"]


LIMITS = ReaderLimits(max_bytes=10_000)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="likewise")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(12):
        (folder / f"{number}.md").write_text(
            f"# Part {number}\n\n" + " ".join(SENTENCES[number % 3 :]), "utf-8"
        )
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    return folder


OPTIONS = ("--size", "tiny", "--vocab-size", 75, "--held-out", 0.2, "--batch-tokens", 256, "--length", 32)
QUICK = ("--precision", "float32", "--device", "cpu")


@pytest.fixture(scope="module")
def model(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "model"
    result = run("pretrain", corpus, "-o", folder, *OPTIONS, *QUICK, "--steps", 3, "--json")
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert list(value) == [
        "version",
        "folder",
        "status",
        "steps",
        "epochs",
        "seconds",
        "precision",
        "metrics",
        "corpus",
        "parameters",
    ]
    assert (value["status"], value["steps"], value["precision"]) == ("finished", 3, "float32")
    assert set(value["metrics"]) == {"loss", "perplexity", "masked_accuracy"}
    assert value["corpus"]["documents"] == 12 and 1 <= value["corpus"]["held_out"] <= 8
    assert "held out: loss" in result.stderr
    told = re.search(r"12 documents, (\d) held out; ([\d,]+) tokens, a vocabulary of 75; ", result.stderr)
    assert told is not None and int(told[1]) == value["corpus"]["held_out"]
    assert f"{value['parameters']['parameters']:,} parameters" in result.stderr
    return folder


def test_files_that_hold_no_text_are_told(corpus: Path, tmp_path: Path) -> None:
    result = run("pretrain", corpus, "-o", tmp_path / "model", *OPTIONS, *QUICK, "--steps", 1)
    assert result.exit_code == 0, result.output
    assert "picture.png" in result.stderr
    assert "1 file could not be read" in result.stderr
    assert result.stderr.count("picture.png") == 1  # the text is read twice, the notice given once
    assert "finished after 1 steps" in result.stdout


def test_text_files_larger_than_an_index_takes_are_streamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from likewise.cli.corpus import CorpusFiles
    from likewise.index.readers import base

    (tmp_path / "big.txt").write_text("多年。A line of a large file.\n" * 3_000, "utf-8")
    (tmp_path / "small.txt").write_text("A small one.", "utf-8")
    monkeypatch.setattr(base, "ReaderLimits", lambda: LIMITS)
    texts = [document.text for document in CorpusFiles([tmp_path]).documents()]
    assert "".join(texts[:-1]) == "多年。A line of a large file.\n" * 3_000 and len(texts) > 3
    assert texts[-1] == "A small one."


def test_the_model_is_one_for_everybody(model: Path) -> None:
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md", "loss.png"} <= {
        path.name for path in model.iterdir()
    }


def test_a_finished_run_is_not_repeated_and_other_settings_are_refused(corpus: Path, model: Path) -> None:
    again = run("pretrain", corpus, "-o", model, *OPTIONS, *QUICK, "--steps", 3)
    assert again.exit_code == 0 and "going on from step 3" in again.stderr
    other = run("pretrain", corpus, "-o", model, *OPTIONS, *QUICK, "--steps", 4)
    assert other.exit_code == 1
    assert "settings.steps was 3, now 4" in other.stderr and "another output folder" in other.stderr


def test_rates_may_change_in_the_course_of_a_run(corpus: Path, tmp_path: Path) -> None:
    changing = ("--mask-rate", 0.3, "--final-mask-rate", 0.15, "--accumulate", 2, "--batch-warmup", 0.5)
    result = run("pretrain", corpus, "-o", tmp_path / "model", *OPTIONS, *QUICK, *changing, "--steps", 2)
    assert result.exit_code == 0, result.output
    saved = next((tmp_path / "model" / "training" / "checkpoints").glob("step-*")) / "checkpoint.json"
    config = json.loads(saved.read_text("utf-8"))["config"]
    assert config["settings"]["batch_warmup"] == 0.5
    assert "rate=0.3, final_rate=0.15" in config["masking"]


def test_evaluation_of_a_single_batch_has_no_interval(corpus: Path, model: Path) -> None:
    arguments = ("evaluate-mlm", model, corpus, "--length", 32, "--device", "cpu", "--batches", 1)
    result = run(*arguments)
    assert result.exit_code == 0 and "one batch only, hence no interval" in result.stdout
    assert "inf" not in result.stdout
    loss = json.loads(run(*arguments, "--json").stdout)["loss"]
    assert loss["low"] is loss["high"] is None


def test_fill_mask(model: Path) -> None:
    result = run("fill-mask", "The [MASK] key [MASK].", "-m", model, "-k", 2, "--json")
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert [len(fills) for fills in value["masks"]] == [2, 2]
    assert list(value["masks"][0][0]) == ["token", "id", "probability", "text"]
    assert run("fill-mask", "no mask", "-m", model).exit_code == 2


def test_evaluate_mlm(corpus: Path, model: Path) -> None:
    result = run(
        "evaluate-mlm", model, corpus, "--held-out", 0.2, "--length", 32, "--device", "cpu", "--json"
    )
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert list(value) == ["version", "model", "targets", "masked_accuracy", "perplexity", "loss"]
    assert list(value["loss"]) == ["value", "low", "high"]
    assert 0 <= value["masked_accuracy"]["value"] <= 1 and value["targets"] > 0


def test_distill(corpus: Path, model: Path, tmp_path: Path) -> None:
    result = run(
        *("distill", model, corpus, "-o", tmp_path / "student", "--layers", 1, "--held-out", 0.2),
        *("--length", 32, "--batch-tokens", 256, *QUICK, "--steps", 2, "--json"),
    )
    assert result.exit_code == 0, result.output
    assert {"soft", "mlm", "cosine"} <= set(json.loads(result.stdout)["metrics"])
    assert json.loads((tmp_path / "student" / "config.json").read_text())["num_hidden_layers"] == 1


def test_attention(model: Path, tmp_path: Path) -> None:
    result = run("attention", "the key", "-m", model, "--json")
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert list(value) == ["version", "tokens", "weights"]
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in value["weights"])
    assert run("attention", "the key", "-m", model, "--png", tmp_path / "a.png").exit_code == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert run("attention", "the key", "-m", model, "--layer", 9).exit_code == 2


def test_tokenizer(corpus: Path, tmp_path: Path) -> None:
    result = run("tokenizer", "train", corpus, "--vocab-size", 75, "-o", tmp_path / "t", "--json")
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert value["tokens"] == 75
    assert {"language", "characters_per_token", "unknown_rate", "covered"} == set(value["languages"][0])
    options = ("--special", "<user>", "--cased", "--accents", "strip")
    assert (
        run("tokenizer", "train", corpus, "--vocab-size", 75, "-o", tmp_path / "s", *options).exit_code == 0
    )
    marked = run("tokenizer", "show", "<user> Á", "-t", tmp_path / "s").stdout.split()
    assert marked == ["[CLS]", "<user>", "A", "[SEP]"]
    shown = run("tokenizer", "show", "金鑰", "-t", tmp_path / "t")
    assert shown.stdout.split() == ["[CLS]", "金", "鑰", "[SEP]"]
    default = run("tokenizer", "show", "signing 金鑰").stdout.split()
    assert default == ["[CLS]", "signing", "金鑰", "[SEP]"]
    listed = json.loads(run("tokenizer", "show", "金鑰", "-t", tmp_path / "t", "--json").stdout)
    assert listed["tokens"][0]["token"] == "[CLS]"


def test_tokenizer_with_chinese_words(corpus: Path, tmp_path: Path) -> None:
    options = ("-o", tmp_path / "t", "--chinese", "join", "--segmenter", "jieba")
    refused = run("tokenizer", "train", corpus, "--vocab-size", 75, *options)
    assert refused.exit_code == 2 and "--algorithm bpe" in refused.stderr
    result = run("tokenizer", "train", corpus, "--algorithm", "bpe", "--vocab-size", 270, *options)
    assert result.exit_code == 0, result.output
    assert "270 tokens" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--steps", 1, "--minutes", 1), 2, "one of --steps, --epochs and --minutes"),
        (("--steps", 1, "--vocab-size", 30_000), 1, "ask for a vocabulary of at most"),
        (("--steps", 1, "--size", "huge"), 2, "unknown model size 'huge'"),
        (("--steps", 1, "--init", "all-MiniLM-L6-v2", "--length", 1024), 2, "at most 512 tokens"),
        (("--steps", 1, "--init", "all-MiniLM-L6-v2", "--recipe", "bert"), 2, "--init continues a model"),
        (("--steps", 1, "--recipe", "gpt", "--mask-rate", 0.3), 2, "hides no tokens"),
        (("--steps", 1, "--lr", -1), 2, "learning_rate above 0"),
    ],
)
def test_wrong_requests(
    corpus: Path, tmp_path: Path, arguments: tuple[object, ...], status: int, message: str
) -> None:
    result = run("pretrain", corpus, "-o", tmp_path / "model", *QUICK, *arguments)
    assert message in result.stderr
    assert result.exit_code == status


def test_the_guide_uses_commands_and_options_that_exist() -> None:
    guide = (
        (Path(__file__).resolve().parents[2] / "docs" / "pretraining.md")
        .read_text("utf-8")
        .replace("\\\n", " ")
    )
    lines = [
        line for block in re.findall(r"```sh\n(.*?)```", guide, re.DOTALL) for line in block.splitlines()
    ]
    calls = [line.partition("likewise ")[2] for line in lines if not line.startswith("pip ")]
    assert len(calls) > 10
    for call in calls:
        name, *words = shlex.split(call)
        command = cli.get_command(click.Context(cli), name)
        if isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        assert command is not None, call
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, call


@pytest.mark.parametrize("content", [b"", b"\0\1\2binary"])
def test_nothing_to_train_on(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "file.txt").write_bytes(content)
    result = run("pretrain", tmp_path / "corpus", "-o", tmp_path / "model", *QUICK, "--steps", 1)
    assert result.exit_code == 1 and "error: expected" in result.stderr
    missing = run("pretrain", tmp_path / "none", "-o", tmp_path / "model", "--steps", 1)
    assert missing.exit_code == 1 and "there is no file or folder" in missing.stderr
