"""Examples, settings and results of small runs of fine-tuning."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from likewise.embedder.heads.data import TextExample
from likewise.embedder.heads.dataset import Data
from likewise.embedder.heads.finetune_settings import FinetuneSettings
from likewise.embedder.heads.readers import Reading
from likewise.embedder.training_settings import TrainingSettings

GOOD, BAD = ("good", "great", "fine", "joy", "好"), ("bad", "dull", "awful", "boring", "壞")


def reviews(count: int, seed: int = 0) -> list[TextExample]:
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        words = list(rng.choice(["film", "plot", "it", "was", "a", "the"], size=rng.integers(1, 8)))
        words.insert(int(rng.integers(len(words))), str(rng.choice(GOOD if number % 2 else BAD)))
        found.append(TextExample((" ".join(words),), "Positive" if number % 2 else "Negative"))
    return found


def short_reviews(count: int, seed: int = 0) -> list[TextExample]:
    """Two words each: what a frozen random encoder can tell apart."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        word = str(rng.choice(GOOD if number % 2 else BAD))
        found.append(TextExample((f"{word} film",), "Positive" if number % 2 else "Negative"))
    return found


def data(train, dev=(), test=()) -> Data:
    return Data(list(train), list(dev), list(test), {"train": f"{len(train)} examples"}, [])


def settings(model: Path, kind="classification", *, pair=False, epochs=4.0, **changes) -> FinetuneSettings:
    training = TrainingSettings(
        epochs=epochs, learning_rate=changes.pop("rate", 5e-3), warmup=0.1, precision="float32", log_every=5
    )
    return FinetuneSettings(
        reading=Reading(kind=kind, pair=pair),
        training=training,
        model=str(model),
        **({"batch_size": 16, "device": None} | changes),
    )


def reloaded(folder: Path, auto_class: str):
    """A model as anyone would load it with transformers."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return tokenizer, getattr(transformers, auto_class).from_pretrained(folder).eval()
