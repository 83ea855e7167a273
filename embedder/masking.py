"""Which tokens a masked language model has to guess, and what it sees instead of them.

Pure functions of token ids and a random generator. Of the ordinary tokens a share (15%) is chosen; of the
chosen ones 80% become [MASK], 10% a random token and 10% stay as they are, because [MASK] never occurs in
real use and the model must be unsure about every token (Devlin et al. 2018, 1810.04805). Special tokens are
never chosen; padding does not exist yet at this point. Chosen are single tokens, whole words (BERT's later
release), or spans of words (SpanBERT, Joshi et al. 2019, 1907.10529).

Nothing here holds random state: `generator_for` derives a generator from seed, example and draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.examples import Example
from likewise.embedder.masking_vocabulary import MaskingVocabulary
from likewise.errors import UsageError

#: Label of a token that nobody has to guess; the value that cross-entropy in torch leaves out.
NOT_A_TARGET = -100

MaskingUnit = Literal["token", "word", "span"]


class Masked(NamedTuple):
    """A corrupted sequence.

    Attributes:
        ids: int64 of shape (length,), what the model sees.
        labels: int64 of shape (length,): the original token where it has to be guessed, else -100.
    """

    ids: NDArray[np.int64]
    labels: NDArray[np.int64]


def geometric_odds(p: float = 0.2, limit: int = 10) -> tuple[float, ...]:
    """Odds of span lengths 1 to `limit` under a geometric distribution, cut off there as SpanBERT does.

    Example:
        >>> odds = geometric_odds()
        >>> round(sum(length * share for length, share in enumerate(odds, start=1)) / sum(odds), 1)
        3.8
    """
    return tuple(p * (1 - p) ** (length - 1) for length in range(1, limit + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Masking:
    """How to mask; the defaults are BERT's.

    Attributes:
        rate: Share of the ordinary tokens to choose, in [0, 1].
        final_rate: Rate at the end of the training, reached linearly; None keeps it constant. Rates of 30%
            and more train well too (Wettig et al. 2022, 2202.08005).
        evaluation_rate: Rate in evaluation, where figures of different runs must compare.
        unit: Choose single tokens, whole words, or spans of words.
        masked: Share of the chosen tokens that become [MASK].
        random: Share of them that become a random token; the rest stays.
        span_odds: Relative odds of spans of 1, 2, 3 ... words. SpanBERT's by default; ALBERT's n-gram masking
            is (1, 1/2, 1/3).
        duplicates: None draws new masks each time (RoBERTa's dynamic masking); n repeats the same n masks in
            turn (static masking: BERT stored each text ten times).
        seed: Any two runs with the same seed see the same masks.
    """

    rate: float = 0.15
    final_rate: float | None = None
    evaluation_rate: float = 0.15
    unit: MaskingUnit = "token"
    masked: float = 0.8
    random: float = 0.1
    span_odds: tuple[float, ...] = geometric_odds()
    duplicates: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        shares = {
            "rate": self.rate,
            "final_rate": self.rate if self.final_rate is None else self.final_rate,
            "evaluation_rate": self.evaluation_rate,
            "masked": self.masked,
            "random": self.random,
            "masked + random": self.masked + self.random,
        }
        for name, share in shares.items():
            if not 0 <= share <= 1:
                raise UsageError(f"masking: {name}: expected a share in [0, 1], found {share}")
        if self.unit not in ("token", "word", "span"):
            raise UsageError(f"masking: unit: expected token, word or span, found {self.unit!r}")
        if min(self.span_odds, default=-1.0) < 0 or not sum(self.span_odds) > 0:
            raise UsageError(f"masking: span_odds: expected odds >= 0, not all 0, found {self.span_odds}")
        if self.duplicates is not None and self.duplicates < 1:
            raise UsageError(f"masking: expected at least 1 duplicate, found {self.duplicates}")

    def rate_at(self, progress: float) -> float:
        """Rate after this share of the training.

        Example:
            >>> Masking(rate=0.3, final_rate=0.15).rate_at(1.0)
            0.15
        """
        if self.final_rate is None:
            return self.rate
        return self.rate + (self.final_rate - self.rate) * min(max(progress, 0.0), 1.0)


def generator_for(seed: int, key: int, draw: int | None) -> np.random.Generator:
    """The random generator of one example: the same arguments give the same numbers, on every machine.

    Args:
        seed: Of the run.
        key: Of the example, see `Example.key`.
        draw: How often the example was seen before; None for evaluation.
    """
    # Philox is a function of key and counter, so that seeding costs nothing, unlike hashing a seed sequence.
    bits = np.uint64(0xFFFFFFFFFFFFFFFF)
    counter = np.array([0, 0, 0 if draw is None else draw, 1 if draw is None else 0], dtype=np.uint64)
    key_words = np.array([seed & int(bits), key & int(bits)], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(counter=counter, key=key_words))


def mask_example(
    example: Example,
    masking: Masking,
    vocabulary: MaskingVocabulary,
    *,
    draw: int | None,
    progress: float = 0.0,
) -> Masked:
    """Mask one example; a pure function of its arguments.

    Args:
        example: Sequence with special tokens.
        masking: How to mask.
        vocabulary: Of the sequence.
        draw: How often the example was seen before; None for evaluation.
        progress: Share of the training that is done, in [0, 1].
    """
    if draw is None:
        rate = masking.evaluation_rate
    else:
        rate = masking.rate_at(progress)
        if masking.duplicates is not None:
            draw %= masking.duplicates
    rng = generator_for(masking.seed, example.key, draw)
    if masking.unit == "token":
        return corrupt(example.ids, choose_tokens(example.special, rate, rng), masking, vocabulary, rng)
    words = example.words
    if words is None:
        words = vocabulary.word_numbers(example.ids, example.special)
    if masking.unit == "word":
        return corrupt(example.ids, choose_words(words, rate, rng), masking, vocabulary, rng)
    spans = choose_spans(words, rate, rng, odds=masking.span_odds)
    return corrupt(example.ids, spans >= 0, masking, vocabulary, rng, together=spans)


def choose_tokens(special: NDArray[np.bool_], rate: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose ordinary tokens, each equally likely.

    Their number is fixed as in BERT, not binomial; it is rounded up or down at random, so that short texts
    are masked at the same rate as long ones in the mean.

    Args:
        special: Bool of shape (length,), tokens that may not be chosen.
        rate: Share to choose, in [0, 1].
        rng: Source of randomness.

    Returns:
        Bool of shape (length,).

    Example:
        >>> special = np.zeros(512, dtype=bool)
        >>> int(choose_tokens(special, 0.15, np.random.default_rng(0)).sum()) in (76, 77)
        True
    """
    chosen = np.zeros(len(special), dtype=bool)
    ordinary = np.flatnonzero(~special)
    chosen[rng.permutation(ordinary)[: _random_round(len(ordinary) * rate, rng)]] = True
    return chosen


def choose_words(words: NDArray[np.integer], rate: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose whole words in random order until a share of the tokens is reached.

    A word that would overshoot is passed over, as in BERT; if every word would, one of the shortest ones is
    taken with the probability that keeps the rate.

    Args:
        words: Integers of shape (length,), see `Example.words`.
        rate: Share of the ordinary tokens to choose, in [0, 1].
        rng: Source of randomness.

    Returns:
        Bool of shape (length,).

    Example:
        >>> chosen = choose_words(np.array([-1, 0, 0, 1, 2, -1]), 0.5, np.random.default_rng(1))
        >>> int(chosen.sum()), bool(chosen[1] == chosen[2])
        (2, True)
    """
    ordinary = words >= 0
    budget = _random_round(int(ordinary.sum()) * rate, rng)
    names, sizes = np.unique(words[ordinary], return_counts=True)
    taken: list[int] = []
    for at in rng.permutation(len(names)):
        if sizes[at] <= budget:
            taken.append(int(names[at]))
            budget -= int(sizes[at])
        if not budget:
            break
    if budget and not taken:
        shortest = int(rng.choice(np.flatnonzero(sizes == sizes.min())))
        if rng.random() < budget / sizes[shortest]:
            taken.append(int(names[shortest]))
    return np.isin(words, taken)


def choose_spans(
    words: NDArray[np.integer],
    rate: float,
    rng: np.random.Generator,
    *,
    odds: Sequence[float] = geometric_odds(),
) -> NDArray[np.int64]:
    """Choose spans of neighbouring words until a share of the tokens is reached, as SpanBERT does.

    Starts are uniform over the words that are left. A span ends early at the end of the text, at a
    special token, at another span, and where the next word would overshoot the share.

    Args:
        words: Integers of shape (length,), see `Example.words`.
        rate: Share of the ordinary tokens to choose, in [0, 1].
        rng: Source of randomness.
        odds: Relative odds of spans of 1, 2, 3 ... words.

    Returns:
        int64 of shape (length,): number of the span that a token belongs to, -1 if it is not chosen.
    """
    spans = np.full(len(words), -1, dtype=np.int64)
    ordinary = words >= 0
    budget = _random_round(int(ordinary.sum()) * rate, rng)
    names = np.unique(words[ordinary])
    reach = np.cumsum(odds) / np.sum(odds)
    found = 0
    free = names
    # Ends: each round takes a token of a free word or uses up the budget.
    while budget > 0 and len(free):
        start = int(rng.choice(free))
        first = int(np.searchsorted(names, start))
        length = 1 + int(np.searchsorted(reach, rng.random(), side="right"))
        end = None
        for word in names[first : first + length]:
            places = np.flatnonzero(words == word)
            at_other_span = spans[places[0]] >= 0
            across_special = end is not None and places[0] != end
            if at_other_span or across_special:
                break
            if len(places) > budget:
                # A first word too big for what is left is taken as often as keeps the rate.
                if end is None and rng.random() < budget / len(places):
                    spans[places] = found
                budget = 0
                break
            spans[places] = found
            budget -= len(places)
            end = places[-1] + 1
        found += 1
        free = names[~np.isin(names, words[spans >= 0])]
    return spans


def corrupt(
    ids: NDArray[np.integer],
    chosen: NDArray[np.bool_],
    masking: Masking,
    vocabulary: MaskingVocabulary,
    rng: np.random.Generator,
    *,
    together: NDArray[np.int64] | None = None,
) -> Masked:
    """Replace chosen tokens by the mask, by a random token, or not at all.

    Args:
        ids: Integers of shape (length,).
        chosen: Bool of shape (length,).
        masking: The shares of the three fates.
        vocabulary: Gives the mask and the random tokens.
        rng: Source of randomness.
        together: Integers of shape (length,): chosen tokens with the same number share one fate (SpanBERT
            decides for a span as a whole). None decides for each token.
    """
    places = np.flatnonzero(chosen)
    fate = rng.random(len(places))
    if together is not None and len(places):
        fate = fate[np.unique(together[places], return_inverse=True)[1]]
    seen = ids.astype(np.int64)
    seen[places[fate < masking.masked]] = vocabulary.mask_id
    at_random = places[(fate >= masking.masked) & (fate < masking.masked + masking.random)]
    seen[at_random] = vocabulary.ordinary_ids[rng.integers(len(vocabulary.ordinary_ids), size=len(at_random))]
    labels = np.full(len(ids), NOT_A_TARGET, dtype=np.int64)
    labels[places] = ids[places]
    return Masked(seen, labels)


def _random_round(value: float, rng: np.random.Generator) -> int:
    """The integer below or above, at random, with `value` as its mean."""
    return int(np.floor(value + rng.random()))
