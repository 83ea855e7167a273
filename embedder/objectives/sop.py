"""Sentence order prediction: are two neighbouring texts in their order? (Lan et al. 2019, 1909.11942)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from likewise.embedder.objectives.sentence_pair import SentencePairObjective


@dataclass(frozen=True, slots=True)
class SentenceOrderPrediction(SentencePairObjective):
    """ALBERT's second objective, on pairs of `sentence_pairs.sentence_order_pairs`.

    Both texts are of one document, so that topic tells nothing and only coherence does.
    """

    name: ClassVar[str] = "sop"
