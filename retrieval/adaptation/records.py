"""What can be set about adapting an encoder, and what comes of it. Plain records; nothing is trained here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from likewise.embedder.siamese.miner import MiningSettings
from likewise.index.records import Json
from likewise.retrieval.adaptation.candidates import Recipe
from likewise.retrieval.adaptation.decision import Decision
from likewise.retrieval.pairs.records import Kind

KINDS: tuple[Kind, ...] = ("question", "title", "heading", "link", "parallel", "sentence")
"""Neighbouring passages are left out: they teach what documents are alike, not what answers a question."""


@dataclass(frozen=True, kw_only=True)
class AdaptSettings:
    """How an encoder is adapted.

    Attributes:
        recipe: How candidates are trained.
        kinds: Pairs to learn from.
        pairs: Most pairs of each kind.
        questions: Questions about held-out documents, a third for choosing and the others for the verdict.
        held_out: Share of the documents that are not learned from.
        most_passages: Passages that the trial is held among; more take longer and hardly change it.
        mining: Which negatives are taken.
        seed: Of everything that is drawn.
    """

    recipe: Recipe = field(default_factory=Recipe)
    kinds: Sequence[Kind] = KINDS
    pairs: int = 1000
    questions: int = 450
    held_out: float = 0.4
    most_passages: int = 4000
    mining: MiningSettings = field(default_factory=lambda: MiningSettings(first=2, last=30))
    seed: int = 0


Status = Literal["adapted", "left alone", "interrupted"]


@dataclass(frozen=True)
class Adaptation:
    """How a run ended.

    Attributes:
        status: "adapted" if the index answers with the new encoder.
        reason: Why, in words.
        encoder: Directory of the new encoder; None if the index was left alone.
        pairs: Pairs to learn from, by kind.
        mined: How many of them got a hard negative.
        chosen: Name of the candidate that was chosen; "" if there was none.
        choosing: Dense search of base and candidates on the questions that choose.
        decision: What the verdict's questions say; None if there was no candidate.
        steps: Of the training.
        reembedded: Passages that were embedded anew.
    """

    status: Status
    reason: str
    encoder: Path | None = None
    pairs: dict[Kind, int] = field(default_factory=dict)
    mined: int = 0
    chosen: str = ""
    choosing: dict[str, float] = field(default_factory=dict)
    decision: Decision | None = None
    steps: int = 0
    reembedded: int = 0

    def to_json(self) -> dict[str, Json]:
        """What was done and measured, as `adapt --json` shows it."""
        decision = self.decision
        return {
            "version": 1,
            "status": self.status,
            "reason": self.reason,
            "encoder": None if self.encoder is None else str(self.encoder),
            "pairs": {str(kind): count for kind, count in self.pairs.items()},
            "mined": self.mined,
            "steps": self.steps,
            "choosing": {**self.choosing},
            "chosen": self.chosen,
            "decision": None if decision is None else decision.to_json(),
            "reembedded": self.reembedded,
        }
