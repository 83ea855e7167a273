"""What a pretrained encoder is good for: a linear probe on frozen vectors, and a short fine-tune.

Both use the encoder as everybody does, through `AutoModel`, with the mean of its token vectors.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _measure import need
from torch import Tensor, nn

LENGTH = 64


@dataclass(frozen=True)
class Labelled:
    """Texts with their classes."""

    texts: list[str]
    labels: list[int]


@dataclass(frozen=True)
class Accuracy:
    """Share of right answers on n texts."""

    value: float
    n: int

    def __str__(self) -> str:
        half = 1.96 * math.sqrt(self.value * (1 - self.value) / self.n)
        return f"{self.value:.3f} +-{half:.3f}"


def polarity(train: int, test: int) -> tuple[Labelled, Labelled]:
    """Sentences of film reviews, positive or negative: two random samples without a common one."""
    import gzip

    with gzip.open(need("mr-polarity", "mr.tsv.gz"), "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    order = np.random.default_rng(0).permutation(len(rows)).tolist()

    def part(numbers: Sequence[int]) -> Labelled:
        return Labelled([rows[at]["text"] for at in numbers], [int(rows[at]["label"]) for at in numbers])

    return part(order[test : test + train]), part(order[:test])


def probe(folder: Path, train: Labelled, test: Labelled) -> Accuracy:
    """Logistic regression on frozen mean vectors; its strength is chosen on a fifth of the training texts."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    model, tokenizer = _load(folder)
    scaler = StandardScaler()
    known = scaler.fit_transform(_vectors(model, tokenizer, train.texts))
    asked = scaler.transform(_vectors(model, tokenizer, test.texts))
    cut = len(known) * 4 // 5
    labels = np.array(train.labels)

    def fitted(strength: float, end: int) -> Any:
        return LogisticRegression(C=strength, max_iter=300).fit(known[:end], labels[:end])

    strengths = (0.0003, 0.003, 0.03, 0.3)
    best = max(strengths, key=lambda strength: fitted(strength, cut).score(known[cut:], labels[cut:]))
    return Accuracy(float(fitted(best, len(known)).score(asked, test.labels)), len(test.texts))


def finetune(folder: Path, train: Labelled, test: Labelled, *, steps: int, rate: float = 2e-4) -> Accuracy:
    """Train the encoder and a linear layer for some steps of 32 texts."""
    torch.manual_seed(0)
    model, tokenizer = _load(folder)
    head = nn.Linear(model.config.hidden_size, 2)
    parameters = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.01, fused=True)
    order = np.random.default_rng(0).permutation(len(train.texts))
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, 10 * (step + 1) / steps) * (1 - step / steps)
        chosen = np.take(order, range(32 * step, 32 * step + 32), mode="wrap").tolist()
        pooled = _pooled(model, tokenizer, [train.texts[at] for at in chosen])
        loss = nn.functional.cross_entropy(head(pooled), torch.tensor([train.labels[at] for at in chosen]))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = head(torch.from_numpy(_vectors(model, tokenizer, test.texts)))
    right = (scores.argmax(dim=1) == torch.tensor(test.labels)).float().mean()
    return Accuracy(float(right), len(test.texts))


def _load(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer, logging

    logging.set_verbosity_error()  # no table of the heads that are left out
    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def _pooled(model: Any, tokenizer: Any, texts: list[str]) -> Tensor:
    inputs = tokenizer(texts, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")
    hidden = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).last_hidden_state
    weights = inputs["attention_mask"][..., None].to(hidden.dtype)
    mean: Tensor = (hidden * weights).sum(dim=1) / weights.sum(dim=1)
    return mean


@torch.no_grad()
def _vectors(model: Any, tokenizer: Any, texts: list[str]) -> Any:
    order = np.argsort([len(text) for text in texts], kind="stable")
    vectors = np.empty((len(texts), model.config.hidden_size), dtype=np.float32)
    for begin in range(0, len(texts), 64):
        chosen = order[begin : begin + 64]
        vectors[chosen] = _pooled(model, tokenizer, [texts[at] for at in chosen]).numpy()
    return vectors
