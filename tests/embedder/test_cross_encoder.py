"""Cross-encoders against sentence-transformers, on tiny random models of two kinds."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise.embedder.cross_encoder import CrossEncoder
from likewise.errors import EncoderError, EncoderNotFound, UsageError

QUERY = "How do I rotate a signing key?"
PASSAGES = [
    "Create the new key first, then retire the old one.",
    "如何輪換簽署金鑰？先建立新的金鑰。",
    "",
    "key " * 200,
    "The quick brown fox jumps over the lazy dog.",
    "emoji 🗝 and naïve café",
]


@pytest.fixture(scope="session")
def cross_encoder_folder(
    tmp_path_factory: pytest.TempPathFactory, plain_checkpoint: Callable[..., Path]
) -> Callable[..., Path]:
    """Makes a tiny sequence classifier of random weights with the tokenizer of `plain_checkpoint`."""
    made: dict[tuple[str, int], Path] = {}

    def make(architecture: str, labels: int = 1) -> Path:
        import torch
        from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

        if (architecture, labels) not in made:
            base = plain_checkpoint(architecture)
            folder = tmp_path_factory.mktemp(f"cross-{architecture}-{labels}")
            torch.manual_seed(11)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                config = AutoConfig.from_pretrained(base, num_labels=labels)
                model = AutoModelForSequenceClassification.from_config(config).eval()
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.add_(torch.randn_like(parameter) * 0.15)
                model.save_pretrained(folder)
                tokenizer = AutoTokenizer.from_pretrained(base)
                if architecture == "bert":
                    from tokenizers import processors

                    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
                        single="<s> $A </s>",
                        pair="<s> $A </s> $B:1 </s>:1",
                        special_tokens=[("<s>", 0), ("</s>", 2)],
                    )
                tokenizer.save_pretrained(folder)
            if architecture == "bert":
                settings = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
                settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
                (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
            made[architecture, labels] = folder
        return made[architecture, labels]

    return make


def peer_scores(folder: Path) -> Any:
    from sentence_transformers import CrossEncoder as Peer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = Peer(str(folder), device="cpu", local_files_only=True)
        return peer.predict([(QUERY, passage) for passage in PASSAGES], show_progress_bar=False)


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
@pytest.mark.parametrize("runtime", ["openvino", "torch"])
def test_scores_are_those_of_sentence_transformers(
    architecture: str, runtime: Any, cross_encoder_folder: Callable[..., Path]
) -> None:
    folder = cross_encoder_folder(architecture)
    encoder = CrossEncoder.load(folder, runtime=runtime)
    scores = encoder.scores(QUERY, PASSAGES)
    expected = peer_scores(folder)
    assert encoder.runtime.startswith(runtime) and scores.dtype == np.float32
    assert np.abs(scores - expected).max() < 1e-4
    assert np.ptp(expected) > 0.01  # random weights that tell the passages apart
    alone = np.concatenate([encoder.scores(QUERY, [passage]) for passage in PASSAGES])
    assert np.abs(alone - scores).max() < 1e-4


def test_token_types_are_used(cross_encoder_folder: Callable[..., Path], tmp_path: Path) -> None:
    """The same weights with a tokenizer that has no second segment give other scores."""
    folder = Path(shutil.copytree(cross_encoder_folder("bert"), tmp_path / "flat"))
    content = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    for piece in content["post_processor"]["pair"]:
        next(iter(piece.values()))["type_id"] = 0
    (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    flat = CrossEncoder.load(folder, runtime="torch").scores(QUERY, PASSAGES)
    usual = CrossEncoder.load(cross_encoder_folder("bert"), runtime="torch").scores(QUERY, PASSAGES)
    assert np.abs(flat - usual).max() > 1e-3


def test_an_identity_activation_gives_logits(
    cross_encoder_folder: Callable[..., Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(cross_encoder_folder("bert"), tmp_path / "identity"))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["sentence_transformers"] = {"activation_fn": "torch.nn.modules.linear.Identity"}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    logits = CrossEncoder.load(folder).scores(QUERY, PASSAGES)
    assert np.abs(logits - peer_scores(folder)).max() < 1e-4
    squashed = CrossEncoder.load(cross_encoder_folder("bert")).scores(QUERY, PASSAGES)
    assert np.allclose(1 / (1 + np.exp(-logits)), squashed, atol=1e-5)


def test_a_saved_cross_encoder_of_sentence_transformers_loads(
    cross_encoder_folder: Callable[..., Path], tmp_path: Path
) -> None:
    from sentence_transformers import CrossEncoder as Peer

    folder = tmp_path / "saved"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Peer(str(cross_encoder_folder("bert")), device="cpu").save_pretrained(str(folder))
    scores = CrossEncoder.load(folder).scores(QUERY, PASSAGES)
    assert np.abs(scores - peer_scores(folder)).max() < 1e-4


def test_a_prepared_one_needs_neither_torch_nor_transformers(
    cross_encoder_folder: Callable[..., Path],
) -> None:
    folder = cross_encoder_folder("bert")
    CrossEncoder.load(folder)
    script = (
        "import sys\n"
        "from likewise.embedder.cross_encoder import CrossEncoder\n"
        f"CrossEncoder.load({str(folder)!r}).scores('a', ['b', 'c'])\n"
        "assert not {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_no_passages_no_scores(cross_encoder_folder: Callable[..., Path]) -> None:
    assert CrossEncoder.load(cross_encoder_folder("bert")).scores(QUERY, []).shape == (0,)


def test_what_is_no_cross_encoder_is_refused(
    cross_encoder_folder: Callable[..., Path], plain_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(EncoderError, match="a sequence classifier with one label"):
        CrossEncoder.load(plain_checkpoint("bert"))
    with pytest.raises(EncoderError, match="with one label, found 3 labels"):
        CrossEncoder.load(cross_encoder_folder("bert", labels=3))
    with pytest.raises(EncoderNotFound):
        CrossEncoder.load(tmp_path / "missing")
    with pytest.raises(UsageError, match="found 'onnx'"):
        CrossEncoder.load(cross_encoder_folder("bert"), runtime="onnx")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="one string"):
        CrossEncoder.load(cross_encoder_folder("bert")).scores(QUERY, "text")
    folder = Path(shutil.copytree(cross_encoder_folder("bert"), tmp_path / "odd"))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["sbert_ce_default_activation_function"] = "torch.nn.modules.activation.Tanh"
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(EncoderError, match="activation Sigmoid or Identity"):
        CrossEncoder.load(folder)
