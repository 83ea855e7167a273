"""Small data and settings for siamese training that takes seconds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from likewise.embedder.siamese.settings import SiameseSettings
from likewise.embedder.training_settings import TrainingSettings

WORDS = ["key", "lock", "door", "vault", "金鑰", "鎖", "safe", "chain", "bolt", "gate"]


def run_settings(encoder: Path, **changes) -> SiameseSettings:
    loop = {"epochs": 1, "learning_rate": 1e-3, "precision": "float32", "log_every": 1}
    loop |= changes.pop("loop", {})
    return SiameseSettings(
        training=TrainingSettings(**loop),
        encoder=str(encoder),
        **{"batch_size": 8, "device": "cpu", **changes},
    )


def rows(count: int = 48) -> list[dict[str, object]]:
    """Pairs whose score says how many words they share."""
    generator = np.random.default_rng(0)
    found = []
    for _ in range(count):
        first, second = generator.choice(WORDS, 4, replace=False), generator.choice(WORDS, 4, replace=False)
        found.append(
            {
                "sentence1": " ".join(first),
                "sentence2": " ".join(second),
                "score": len(set(first) & set(second)) / 4,
            }
        )
    return found


def write(path: Path, content: list[dict[str, object]]) -> Path:
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in content), "utf-8")
    return path
