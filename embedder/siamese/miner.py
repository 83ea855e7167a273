"""Hard negatives: texts that a search ranks high for an anchor although they are not its answer.

What searches and what scores is passed in, so that any index and any cross-encoder will do; this module only
chooses. A text that is a positive of an anchor, in whatever row, is never its negative, nor is one that holds
such a positive or is a part of it. Margins guard against the positives that nobody marked: what scores nearly
as high as the positive probably is one.

Sources: Xiong et al. 2020, "ANCE" (2007.00808); margins after Moreira et al. 2024, "NV-Retriever"
(2407.15831).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.randomness import seed_for
from likewise.embedder.siamese.pairs import PairData
from likewise.errors import DataError, UsageError

Search: TypeAlias = Callable[[str, int], Sequence[str]]
"""From an anchor and a number to the best texts for it, best first, each once."""
Score: TypeAlias = Callable[[Sequence[str], Sequence[str]], NDArray[np.float32]]
"""From anchors and as many texts to how well each text answers its anchor; higher is better."""
# Characters from which on one text in another is no chance: a passage, and not the answer "yes".
_LEAST_SHARED = 16


@dataclass(frozen=True, kw_only=True)
class MiningSettings:
    """Which of the texts that a search finds are taken.

    Attributes:
        negatives: For each row.
        first: Rank at which candidates begin, at least 1; the first few often are unmarked positives.
        last: Rank at which they end.
        margin: A negative must score lower than the positive by this much; None asks for nothing.
        relative_margin: A negative must score lower than the positive by this share of its score: 0.05
            allows 95% of a score above 0. For cosines; logits have no zero that means something.
        sample: Draw the negatives from the candidates at random instead of taking the best.
        seed: Of the draw.
    """

    negatives: int = 1
    first: int = 1
    last: int = 30
    margin: float | None = None
    relative_margin: float | None = 0.05
    sample: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.negatives < 1 or not 1 <= self.first <= self.last:
            raise UsageError(
                "expected at least 1 negative from ranks 1 <= first <= last, found "
                f"{self.negatives} from {self.first} to {self.last}"
            )
        if self.relative_margin is not None and not 0 <= self.relative_margin < 1:
            raise UsageError(f"expected a relative margin in [0, 1), found {self.relative_margin}")


@dataclass(frozen=True)
class Mined:
    """What mining found.

    Attributes:
        data: Rows with `negative_1` and so on; rows without enough of them are left out.
        left_out: Number of those.
        positives: Candidates dropped because they are a positive of the anchor, hold one or are part of
            one, or are the anchor itself.
        too_close: Candidates that were dropped because of a margin.
    """

    data: PairData
    left_out: int
    positives: int
    too_close: int


def mine(data: PairData, search: Search, settings: MiningSettings, *, score: Score | None = None) -> Mined:
    """Find hard negatives for every row.

    Args:
        data: Anchors and positives; negatives that are there already are replaced.
        search: Finds candidates.
        settings: Which of them to take.
        score: Compares positives and candidates; needed for margins.

    Raises:
        UsageError: A margin without a score.
        DataError: No row got enough negatives.

    Example:
        >>> data = PairData("d", {"anchor": ["cat", "dog"], "positive": ["meow", "bark"]})
        >>> found = mine(data, lambda anchor, k: ["meow", "bark"], MiningSettings(relative_margin=None))
        >>> found.data.columns["negative_1"], found.positives
        (['bark', 'meow'], 2)
    """
    margins = settings.margin is not None or settings.relative_margin is not None
    if margins and score is None:
        raise UsageError("a margin compares scores, but there is nothing that scores")
    anchors, positives = list(data.columns["anchor"]), list(data.columns["positive"])
    known: dict[str, set[str]] = {}
    for anchor, positive in zip(anchors, positives, strict=True):
        known.setdefault(anchor.strip(), set()).add(_spaced(positive))
    own = score(anchors, positives) if score is not None else np.zeros(len(anchors), np.float32)
    kept: list[int] = []
    chosen: list[list[str]] = []
    dropped = close = 0
    for row, (anchor, threshold) in enumerate(zip(anchors, own, strict=True)):
        found = search(anchor, settings.last)[settings.first - 1 : settings.last]
        candidates = [text for text in found if not _answers(text, anchor, known[anchor.strip()])]
        dropped += len(found) - len(candidates)
        if margins and candidates:
            assert score is not None
            scores = score([anchor] * len(candidates), candidates)
            far = scores <= _ceiling(float(threshold), settings)
            close += int((~far).sum())
            candidates = [text for text, is_far in zip(candidates, far, strict=True) if is_far]
        if len(candidates) < settings.negatives:
            continue
        if settings.sample:
            generator = np.random.default_rng(seed_for(settings.seed, row))
            picks = sorted(generator.choice(len(candidates), settings.negatives, replace=False).tolist())
            candidates = [candidates[at] for at in picks]
        kept.append(row)
        chosen.append(candidates[: settings.negatives])
    if not kept:
        raise DataError(
            f"{data.name}: no row has {settings.negatives} negatives among ranks {settings.first} to "
            f"{settings.last}: {dropped} candidates are positives and {close} too close to one",
            remedy="more ranks, fewer negatives, or a smaller margin",
        )
    rows = data.take(kept)
    columns = {
        "anchor": rows.columns["anchor"],
        "positive": rows.columns["positive"],
        **{f"negative_{n + 1}": [texts[n] for texts in chosen] for n in range(settings.negatives)},
    }
    return Mined(replace(rows, columns=columns), len(data) - len(kept), dropped, close)


def _answers(text: str, anchor: str, positives: set[str]) -> bool:
    """Whether a text is the anchor, or a positive of it, as far as its wording tells."""
    spaced = _spaced(text)
    if text.strip() == anchor.strip() or spaced in positives:
        return True
    return any(
        min(len(spaced), len(positive)) >= _LEAST_SHARED and (positive in spaced or spaced in positive)
        for positive in positives
    )


def _spaced(text: str) -> str:
    """A text with single spaces."""
    return " ".join(text.split())


def _ceiling(positive: float, settings: MiningSettings) -> float:
    """Highest score that a negative may have."""
    ceiling = float("inf")
    if settings.margin is not None:
        ceiling = positive - settings.margin
    if settings.relative_margin is not None:
        # By the size of the score: a positive below 0 is no licence for everything above it.
        ceiling = min(ceiling, positive - settings.relative_margin * abs(positive))
    return ceiling
