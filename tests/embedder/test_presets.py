from __future__ import annotations

import pytest
import torch

from likewise.embedder.bert import Bert
from likewise.embedder.presets import PRESETS, preset
from likewise.embedder.pretraining import PretrainingModel, ReplacedTokenModel
from likewise.errors import UsageError


def parameters(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def embedding_parameters(vocab: int, positions: int, segments: int, width: int) -> int:
    return (vocab + positions + segments) * width + 2 * width


def layer_parameters(hidden: int, ffn: int) -> int:
    return 4 * (hidden * hidden + hidden) + 2 * hidden * ffn + ffn + hidden + 4 * hidden


# name, published millions, and the count written out
PUBLISHED = [
    (
        "bert-base",
        110,
        embedding_parameters(30522, 512, 2, 768) + 12 * layer_parameters(768, 3072) + 768 * 769,
    ),
    (
        "bert-large",
        340,
        embedding_parameters(30522, 512, 2, 1024) + 24 * layer_parameters(1024, 4096) + 1024 * 1025,
    ),
    (
        "roberta-base",
        125,
        embedding_parameters(50265, 512, 1, 768) + 12 * layer_parameters(768, 3072) + 768 * 769,
    ),
    (
        "albert-base",
        12,
        embedding_parameters(30000, 512, 2, 128) + 129 * 768 + layer_parameters(768, 3072) + 768 * 769,
    ),
    (
        "electra-small",
        14,
        embedding_parameters(30522, 512, 2, 128) + 129 * 256 + 12 * layer_parameters(256, 1024),
    ),
    ("distilbert", 66, embedding_parameters(30522, 512, 0, 768) + 6 * layer_parameters(768, 3072)),
]


@pytest.mark.parametrize(("name", "millions", "exact"), PUBLISHED)
def test_parameter_counts_are_the_published_ones(name: str, millions: int, exact: int) -> None:
    with torch.device("meta"):  # shapes without memory: BERT large would take 1.3 GB
        model = Bert(preset(name))
    assert parameters(model) == exact
    # Papers round: 340M for what the released weights count as 335M without the heads.
    assert parameters(model) / 1e6 == pytest.approx(millions, rel=0.04)


def test_counts_equal_hugging_face_for_the_released_checkpoints() -> None:
    """Counts of the released models: bert-base-uncased 109,482,240 and distilbert-base-uncased 66,362,880."""
    with torch.device("meta"):
        assert parameters(Bert(preset("bert-base"))) == 109_482_240
        assert parameters(Bert(preset("distilbert"))) == 66_362_880
        assert parameters(Bert(preset("bert-large"))) == 335_141_888


def test_small_presets_grow_in_order() -> None:
    with torch.device("meta"):
        sizes = [parameters(Bert(preset(name))) for name in ("tiny", "mini", "small", "bert-base")]
    assert sizes == sorted(sizes)
    assert sizes[0] < 5e6


def test_token_head_costs_no_second_table() -> None:
    with torch.device("meta"):
        config = preset("bert-base")
        extra = parameters(PretrainingModel(config)) - parameters(Bert(config))
    assert extra == 768 * 768 + 768 + 2 * 768 + 30522


def test_electra_shares_one_table_between_generator_and_discriminator() -> None:
    with torch.device("meta"):
        model = ReplacedTokenModel(preset("electra-small"))
    assert model.generator.encoder.embeddings is model.encoder.embeddings
    generator = model.generator.encoder
    own = parameters(generator) - parameters(generator.embeddings)
    assert own == 129 * 64 + 12 * layer_parameters(64, 256)


@pytest.mark.parametrize("name", PRESETS)
def test_all_presets_build(name: str) -> None:
    with torch.device("meta"):
        out = Bert(preset(name))(torch.zeros(2, 5, dtype=torch.long))
    assert out.shape == (2, 5, preset(name).hidden_size)


def test_unknown_preset_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'huge'; expected one of tiny, mini, small"):
        preset("huge")
