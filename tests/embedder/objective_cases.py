"""Small models and examples on which every objective is tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from likewise.embedder.bert import BertConfig
from likewise.embedder.examples import Example
from likewise.embedder.masking import Masking
from likewise.embedder.masking_vocabulary import MaskingVocabulary
from likewise.embedder.objectives import Objective
from likewise.embedder.objectives.causal import CausalLanguageModelling
from likewise.embedder.objectives.distillation import Distillation
from likewise.embedder.objectives.joint import Joint
from likewise.embedder.objectives.mlm import MaskedLanguageModelling
from likewise.embedder.objectives.nsp import NextSentencePrediction
from likewise.embedder.objectives.rtd import ReplacedTokenDetection
from likewise.embedder.objectives.sop import SentenceOrderPrediction
from likewise.embedder.pretraining import PretrainingModel, ReplacedTokenModel
from likewise.embedder.sentence_pairs import Pair

V = 61

CONFIG = BertConfig(
    vocab_size=V,
    hidden_size=16,
    layers=2,
    heads=2,
    ffn_size=24,
    max_positions=40,
    dropout=0.0,
    attention_dropout=0.0,
)

VOCABULARY = MaskingVocabulary(4, np.arange(5, V))
MANY = Masking(rate=0.4)


def texts(*lengths: int, seed: int = 0) -> list[Example]:
    rng = np.random.default_rng(seed)
    found = []
    for key, length in enumerate(lengths):
        special = np.zeros(length, dtype=bool)
        special[[0, -1]] = True
        found.append(
            Example(np.array([2, *rng.integers(5, V, size=max(0, length - 2)), 3])[:length], special, key)
        )
    return found


def pairs(*lengths: int) -> list[Example]:
    rng = np.random.default_rng(1)
    return [
        Pair(rng.integers(5, V, size=n), rng.integers(5, V, size=n + 1), n % 2).example(
            cls_id=2, sep_id=3, key=n
        )
        for n in lengths
    ]


def noisy(model: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.double()  # 1e-6 is then a statement about the arithmetic and not about rounding


def teacher() -> PretrainingModel:
    return noisy(PretrainingModel(replace(CONFIG, layers=4)))


MLM = MaskedLanguageModelling(VOCABULARY, MANY)
Build = Callable[[], tuple[Objective, torch.nn.Module]]

CASES: dict[str, tuple[Build, Callable[..., list[Example]]]] = {
    "mlm": (lambda: (MLM, noisy(PretrainingModel(CONFIG))), texts),
    "nsp": (lambda: (NextSentencePrediction(), noisy(PretrainingModel(CONFIG, pair_head="pair"))), pairs),
    "sop": (lambda: (SentenceOrderPrediction(), noisy(PretrainingModel(CONFIG, pair_head="pair"))), pairs),
    "mlm+nsp": (
        lambda: (Joint(MLM, (NextSentencePrediction(),)), noisy(PretrainingModel(CONFIG, pair_head="pair"))),
        pairs,
    ),
    "rtd": (
        lambda: (
            ReplacedTokenDetection(VOCABULARY, replace(MANY, masked=0.85, random=0.0)),
            noisy(ReplacedTokenModel(replace(CONFIG, embedding_size=12), 0.5)),
        ),
        texts,
    ),
    "causal": (
        lambda: (
            CausalLanguageModelling(),
            noisy(PretrainingModel(replace(CONFIG, causal=True), token_head="direct")),
        ),
        texts,
    ),
    "distillation-all": (
        lambda: (Distillation(teacher(), VOCABULARY, MANY), noisy(PretrainingModel(CONFIG))),
        texts,
    ),
    "distillation-masked": (
        lambda: (
            Distillation(teacher(), VOCABULARY, MANY, soft_at="masked"),
            noisy(PretrainingModel(CONFIG)),
        ),
        texts,
    ),
}


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {
        name: torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for name, parameter in model.named_parameters()
    }
