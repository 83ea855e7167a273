"""`likewise distill --parallel`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from likewise import Encoder
from likewise.cli.distill_parallel import read_files
from likewise.cli.main import cli
from likewise.errors import DataError

from .conftest import CHINESE, ENGLISH

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
QUICK = ("--epochs", 2, "--batch-size", 8, "--held-out", 0.2, "--precision", "float32", "--device", "cpu")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="likewise")


@pytest.fixture
def parallel(tmp_path: Path) -> Path:
    generator = np.random.default_rng(5)
    lines = ["en\tzh"]
    for _ in range(60):
        words = generator.choice(len(CHINESE), size=3, replace=False)
        lines.append(" ".join(ENGLISH[at] for at in words) + "\t" + "".join(CHINESE[at] for at in words))
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_new_tokens_alone(english_model: Path, parallel: Path, tmp_path: Path) -> None:
    student = tmp_path / "student"
    result = run(
        "distill", english_model, "--parallel", parallel, "--rows-only", "-o", student, *QUICK, "--json"
    )
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert value["status"] == "finished" and value["metric"] == "pairs-held-out.mrr"
    before, after = Encoder.load(english_model, runtime="torch"), Encoder.load(student, runtime="torch")
    assert before.unknown_share(["旧钥"]).tolist() == [1.0] and after.unknown_share(["旧钥"]).tolist() == [
        0.0
    ]
    np.testing.assert_array_equal(before.encode_passages(ENGLISH), after.encode_passages(ENGLISH))


def test_everything_and_another_student(english_model: Path, parallel: Path, tmp_path: Path) -> None:
    student = tmp_path / "student"
    options = (
        "--student",
        english_model,
        "--column",
        "anchor=en",
        "--column",
        "positive=zh",
        "--hold",
        2,
        "--blend",
        0.2,
        "--keep-worse",
    )
    result = run("distill", english_model, "--parallel", parallel, *options, "-o", student, *QUICK)
    assert result.exit_code == 0, result.output
    assert "finished after" in result.stdout
    assert "| dropout | 0.0 |\n" in (student / "README.md").read_text("utf-8")
    assert Encoder.load(student, runtime="torch").unknown_share(["旧钥"]).tolist() == [0.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--parallel",), "expected FILE with parallel sentences"),
        (("--parallel", "--static"), "one of --static and --parallel"),
        (("--parallel", "missing.tsv"), "there is no file missing.tsv"),
        (("--parallel", "x.tsv", "--layers", 2), "--to-layers means nothing for parallel sentences"),
        (("--parallel", "x.tsv", "--words", 5), "--words needs to know where words end"),
        (("--parallel", "x.tsv", "--column", "label=x"), "expected --column anchor=NAME"),
        (("--rows-only",), "--rows-only is for parallel sentences"),
        (("--keep-worse",), "--keep-worse is for parallel sentences"),
        (("--hold", 3), "--hold is for parallel sentences"),
        (("--dropout", 0.1), "--dropout is for parallel sentences"),
        (("--words", 3), "--words is for static and bilingual students"),
    ],
)
def test_options_that_make_no_sense(
    english_model: Path, tmp_path: Path, arguments: tuple[object, ...], message: str
) -> None:
    result = run("distill", english_model, *arguments, "-o", tmp_path / "student")
    assert result.exit_code in (1, 2)
    assert message in result.output


def test_a_column_that_plays_no_part_can_be_ignored(tmp_path: Path) -> None:
    path = tmp_path / "scored.csv"
    path.write_text("anchor,positive,score\nkey,金鑰,4\nlock,鎖,5\n", "utf-8")
    with pytest.raises(DataError, match="would ignore the column 'score'") as caught:
        read_files((path,), ())
    assert "--column label=" in caught.value.remedy
    [data] = read_files((path,), ("label=",))
    assert dict(data.columns) == {"anchor": ["key", "lock"], "positive": ["金鑰", "鎖"]}
