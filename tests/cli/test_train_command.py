"""`likewise train` on a tiny encoder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from likewise.cli.main import cli
from likewise.cli.train import LOSSES as OFFERED
from likewise.embedder.siamese.tasks import LOSSES


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="likewise")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with a vocabulary of its own."""
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("encoder")
    words = BertWordPieceTokenizer()
    words.train_from_iterator(
        [f"key lock door {n} 金鑰" for n in range(40)], vocab_size=120, show_progress=False
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words._tokenizer,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        model_max_length=32,
    )
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


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
        (("--column", "claim"), 2, "--column ROLE=NAME"),
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


def test_a_missing_file(tmp_path: Path) -> None:
    result = run("train", tmp_path / "none.csv", "-o", tmp_path / "m")
    assert result.exit_code == 1 and "there is no file" in result.stderr
