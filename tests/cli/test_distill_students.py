"""`likewise distill` from a sentence encoder to a shallower one and to a static one, and into an index."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from likewise import Encoder
from likewise.cli.main import cli

from ..tiny_bert import save_tiny_bert

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
DOCUMENTS = {
    "keys.md": "# Keys\n\nRotate the signing key once a year. Create the new key first, then retire it.\n",
    "backups.md": "# Backups\n\nBackups run every night at two. They are kept for thirty days.\n",
    "金鑰.md": "# 簽署金鑰\n\n簽署金鑰每年輪替一次並且留下記錄。先建立新的金鑰，再停用舊的金鑰。\n",
    "备份.md": "# 备份\n\n备份每天凌晨两点运行，保留三十天。恢复备份时，先停止服务，再复制归档。\n",
    "notes.txt": "Lunch is at noon in the canteen. The canteen closes at two o'clock.\n",
}
QUICK = ("--device", "cpu", "--steps", 2)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="likewise")


def write_documents(folder: Path) -> None:
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text, "utf-8")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    write_documents(folder)
    return folder


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny sentence encoder: BERT of four layers, mean pooling, normalisation."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from tokenizers import BertWordPieceTokenizer

    words = BertWordPieceTokenizer()
    words.train_from_iterator(list(DOCUMENTS.values()), vocab_size=300, show_progress=False)
    plain = save_tiny_bert(tmp_path_factory.mktemp("plain"), words, width=32, layers=4)
    folder = tmp_path_factory.mktemp("teacher")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = [Transformer(str(plain)), Pooling(32, "mean"), Normalize()]
        SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
    return folder


def same_as_peer(folder: Path) -> Encoder:
    from sentence_transformers import SentenceTransformer

    encoder = Encoder.load(folder, runtime="auto" if "static" in folder.name else "torch")
    texts = list(DOCUMENTS.values())[:4]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = SentenceTransformer(str(folder), device="cpu").encode(texts)
    np.testing.assert_allclose(encoder.encode_passages(texts), theirs, atol=1e-6)
    return encoder


@pytest.mark.parametrize("spelling", ["--to-layers", "--layers"])
def test_fewer_layers(teacher: Path, corpus: Path, tmp_path: Path, spelling: str) -> None:
    options = ("--length", 32, "--batch-tokens", 256, "--held-out", 0.2, "--precision", "float32")
    result = run("distill", teacher, corpus, spelling, 2, "-o", tmp_path / "m", *options, *QUICK, "--json")
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert value["status"] == "finished" and "loss" in value["metrics"]
    assert json.loads((tmp_path / "m" / "config.json").read_text())["num_hidden_layers"] == 2
    encoder = same_as_peer(tmp_path / "m")
    assert (encoder.dimension, encoder.pooling) == (32, ("mean",))


def test_a_teacher_whose_checkpoint_stands_in_a_folder(teacher: Path, corpus: Path, tmp_path: Path) -> None:
    import shutil

    nested = Path(shutil.copytree(teacher, tmp_path / "nested"))
    modules = json.loads((nested / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (nested / "modules.json").write_text(json.dumps(modules))
    (nested / "0_Transformer").mkdir()
    for path in nested.glob("*"):
        if path.is_file() and path.name not in ("modules.json", "config_sentence_transformers.json"):
            path.rename(nested / "0_Transformer" / path.name)
    options = ("--to-layers", 2, "--length", 32, "--held-out", 0.2, "--precision", "float32")
    result = run("distill", nested, corpus, "-o", tmp_path / "m", *options, *QUICK)
    assert result.exit_code == 0, result.output
    assert same_as_peer(tmp_path / "m").pooling == ("mean",)


def test_no_layers(teacher: Path, corpus: Path, tmp_path: Path) -> None:
    student = tmp_path / "static"
    options = ("--static", "--dimension", 16, "--words", 2, "--epochs", 3)
    result = run("distill", teacher, corpus, "-o", student, *options, "--json")
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert list(value) == [
        "version",
        "folder",
        "status",
        "tokens",
        "words",
        "dimension",
        "texts",
        "agreement",
    ]
    assert value["dimension"] == 16 and value["texts"] > 10 and len(value["agreement"]) == 2
    assert same_as_peer(student).runtime == "static cpu float32"
    home = tmp_path / "handbook"
    home.mkdir()
    write_documents(home)
    assert run("index", home, "--encoder", student).exit_code == 0
    found = run(
        "search", "rotate the signing key", "--index", home / ".likewise", "--mode", "dense", "--json"
    )
    assert found.exit_code == 0, found.output
    assert "keys.md" in [hit["path"] for hit in json.loads(found.stdout)["hits"]]


def test_tokens_alone(teacher: Path, tmp_path: Path) -> None:
    result = run("distill", teacher, "--static", "-o", tmp_path / "static", "--dimension", 8)
    assert result.exit_code == 0, result.output
    assert "token vectors, of 8 dimensions" in result.stdout and "cosine" not in result.stdout
    same_as_peer(tmp_path / "static")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--static", "--layers", 2), "--to-layers is for students with layers"),
        (("--static", "--mask-rate", 0.2), "--mask-rate is for students with layers"),
        (("--static", "--words", 5), "are for a CORPUS, and none is given"),
        (("--static", "--epochs", 5), "are for a CORPUS, and none is given"),
        (("--dimension", 5), "--dimension is for static students"),
        ((), "expected a CORPUS to learn on"),
    ],
)
def test_wrong_requests(teacher: Path, tmp_path: Path, arguments: tuple[object, ...], message: str) -> None:
    result = run("distill", teacher, "-o", tmp_path / "m", *arguments)
    assert message in result.stderr and result.exit_code == 2
