"""Vectors equal those of sentence-transformers, for every architecture, pooling and module."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from likewise.embedder.encoder import Encoder
from likewise.embedder.spec import POOLING_MODES

ARCHITECTURES = (
    "bert",
    "roberta",
    "distilbert",
    "albert",
    "mpnet",
    "xlm-roberta",
    "modernbert",
    "llama",
    "gpt2",
)
TEXTS = [
    "How do I rotate a signing key?",
    "如何輪換簽署金鑰？敏捷的棕色狐狸跳过懒狗。",
    "a",
    "key " * 90,
    "emoji 🗝 and naïve café, مرحبا",
    "\x00 nul",
]
Maker = Callable[..., Path]

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:sentence_transformers")


def oracle(folder: Path, texts: list[str], **options: Any) -> NDArray[np.float32]:
    """What sentence-transformers computes, one text at a time: left padding shifts GPT-2's positions."""
    from sentence_transformers import SentenceTransformer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        rows = [model.encode([text], normalize_embeddings=True, **options)[0] for text in texts]
    return np.stack(rows)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_pooling_in_torch(architecture: str, sentence_model: Maker) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    folder = sentence_model(architecture)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    for modes in [*((mode,) for mode in POOLING_MODES), POOLING_MODES]:
        model[1] = Pooling(32, modes)
        expected = np.stack([model.encode([text], normalize_embeddings=True)[0] for text in TEXTS])
        encoder = Encoder.load(folder, runtime="torch", pooling="+".join(modes))
        assert encoder.dimension == 32 * len(modes)
        np.testing.assert_allclose(encoder.encode_passages(TEXTS), expected, atol=1e-5, err_msg=str(modes))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_openvino(architecture: str, sentence_model: Maker) -> None:
    folder = sentence_model(architecture, ("mean", "lasttoken", "weightedmean", "max"))
    encoder = Encoder.load(folder)
    assert encoder.runtime.startswith("openvino")
    cosines = (encoder.encode_passages(TEXTS) * oracle(folder, TEXTS)).sum(axis=1)
    assert cosines.min() >= 0.9995


@pytest.mark.parametrize("padding_side", ["left", "right"])
@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_a_decoder_whichever_side_it_pads(
    architecture: str, padding_side: str, sentence_model: Maker
) -> None:
    folder = sentence_model(architecture, "lasttoken", padding_side=padding_side)
    vectors = Encoder.load(folder, runtime="torch").encode_passages(TEXTS)
    np.testing.assert_allclose(vectors, oracle(folder, TEXTS), atol=1e-5)


def test_modules_after_the_pooling(sentence_model: Maker) -> None:
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense, Dropout, Normalize

    torch.manual_seed(3)
    more = [
        Normalize(),
        Dense(64, 48, activation_function=torch.nn.GELU()),
        Dropout(0.5),
        Dense(48, 48, use_residual=True),
        Dense(48, 20, bias=False, use_residual=True, activation_function=torch.nn.Identity()),
        Normalize(),
    ]
    folder = sentence_model("bert", ("cls", "mean"), more=more)
    encoder = Encoder.load(folder, runtime="torch")
    assert encoder.dimension == 20
    expected = oracle(folder, TEXTS)
    np.testing.assert_allclose(encoder.encode_passages(TEXTS), expected, atol=1e-5)
    converted = Encoder.load(folder)
    assert converted.runtime.startswith("openvino")
    assert (converted.encode_passages(TEXTS) * expected).sum(axis=1).min() >= 0.9995


@pytest.mark.parametrize("modes", ["cls", "max", "mean", "weightedmean"])
def test_a_prompt_left_out_of_the_pooling(modes: str, sentence_model: Maker) -> None:
    prompts = {"query": "find: ", "document": "rotate the brown fox "}
    folder = sentence_model("bert", modes, prompts=prompts, include_prompt=False)
    encoder = Encoder.load(folder, runtime="torch")
    expected = oracle(folder, TEXTS[:3], prompt_name="document")
    np.testing.assert_allclose(encoder.encode_passages(TEXTS[:3]), expected, atol=1e-5)
    expected = oracle(folder, TEXTS[:3], prompt_name="query")
    np.testing.assert_allclose(encoder.encode_queries(TEXTS[:3]), expected, atol=1e-5)
    if modes == "mean":
        converted = Encoder.load(folder)
        assert converted.runtime.startswith("openvino")
        assert (converted.encode_queries(TEXTS[:3]) * expected).sum(axis=1).min() >= 0.9995


def test_prompts_change_the_vector_as_there(sentence_model: Maker) -> None:
    folder = sentence_model("roberta", prompts={"query": "find: ", "passage": "text: "})
    encoder = Encoder.load(folder, runtime="torch")
    np.testing.assert_allclose(
        encoder.encode_queries(TEXTS), oracle(folder, TEXTS, prompt_name="query"), atol=1e-5
    )
    np.testing.assert_allclose(
        encoder.encode_passages(TEXTS), oracle(folder, TEXTS, prompt_name="passage"), atol=1e-5
    )


def test_parts_that_only_sentence_transformers_knows(sentence_model: Maker) -> None:
    from sentence_transformers.sentence_transformer.modules import LayerNorm

    folder = sentence_model("bert", more=[LayerNorm(32)])
    encoder = Encoder.load(folder)
    assert encoder.runtime.startswith("sentence-transformers")
    assert encoder.dimension == 32
    np.testing.assert_allclose(encoder.encode_passages(TEXTS), oracle(folder, TEXTS), atol=1e-5)


def test_cut_vectors(sentence_model: Maker) -> None:
    import json

    folder = sentence_model("bert")
    settings = folder / "config_sentence_transformers.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "truncate_dim": 12}))
    encoder = Encoder.load(folder, runtime="torch")
    assert encoder.dimension == 12
    np.testing.assert_allclose(encoder.encode_passages(TEXTS), oracle(folder, TEXTS), atol=1e-5)


@pytest.mark.parametrize(("architecture", "mode"), [("bert", "mean"), ("llama", "mean")])
def test_a_plain_checkpoint_is_pooled_with_a_warning(
    architecture: str, mode: str, plain_checkpoint: Maker
) -> None:
    folder = plain_checkpoint(architecture)
    with pytest.warns(UserWarning, match="does not say how to pool"):
        encoder = Encoder.load(folder, runtime="torch")
    assert encoder.pooling == (mode,)
    np.testing.assert_allclose(encoder.encode_passages(TEXTS), oracle(folder, TEXTS), atol=1e-5)
    quiet = Encoder.load(folder, runtime="torch", pooling="cls+max")
    assert quiet.notices == ()
    assert quiet.dimension == 64
