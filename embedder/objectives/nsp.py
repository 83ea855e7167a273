"""Next sentence prediction: does the second text follow the first? (Devlin et al. 2018, 1810.04805)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from likewise.embedder.objectives.sentence_pair import SentencePairObjective


@dataclass(frozen=True, slots=True)
class NextSentencePrediction(SentencePairObjective):
    """BERT's second objective, on pairs of `sentence_pairs.next_sentence_pairs`.

    The text that does not follow comes from another document, so its topic often gives it away: RoBERTa
    (1907.11692) found that BERT is as good without.
    """

    name: ClassVar[str] = "nsp"
