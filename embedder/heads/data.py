"""Examples of the tasks, and what must be known of them before training: labels, splits, duplicates, weights.

Nothing here reads a file or knows tokens.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from likewise.errors import DataError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TextExample:
    """A text or a pair of texts with its label.

    Attributes:
        texts: One text, or two.
        label: A label as text, labels as a tuple of texts, a number, or None where it is not known.
    """

    texts: tuple[str, ...]
    label: str | tuple[str, ...] | float | None = None


@dataclass(frozen=True, slots=True)
class TaggedExample:
    """A document of words with a tag each.

    Attributes:
        text: The document.
        words: Begin and end of each word in it.
        tags: One for each word; None where they are not known.
    """

    text: str
    words: tuple[tuple[int, int], ...]
    tags: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A gold answer.

    Attributes:
        text: As it stands in the context.
        start: Character at which it begins there.
    """

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class QuestionExample:
    """A question about a context.

    Attributes:
        question: The question.
        context: The text that may hold the answer.
        answers: All that count as right; empty if the context holds none; None where that is not known.
        key: Its id in the data set.
        title: Of the article, so that a split can keep articles together.
    """

    question: str
    context: str
    answers: tuple[Answer, ...] | None = None
    key: str = ""
    title: str = ""


Example = TextExample | TaggedExample | QuestionExample


def label_names(labels: Sequence[str]) -> tuple[str, ...]:
    """All labels, sorted: numbers by value, other texts by code point.

    Example:
        >>> label_names(["10", "2", "2"]), label_names(["正面", "negative"])
        (('2', '10'), ('negative', '正面'))
    """
    names = set(labels)
    if all(name.lstrip("-").isdecimal() for name in names):
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))


def count_labels(labels: Sequence[str]) -> dict[str, int]:
    """How often each label occurs, most frequent first.

    Example:
        >>> count_labels(["b", "a", "b"])
        {'b': 2, 'a': 1}
    """
    return dict(sorted(Counter(labels).items(), key=lambda item: (-item[1], item[0])))


def class_weights(counts: Sequence[int]) -> list[float]:
    """Weights in inverse proportion to how often a class occurs; their mean over the examples is 1.

    Args:
        counts: Examples of each class, each at least 1.

    Example:
        >>> class_weights([1, 3])
        [2.0, 0.6666666666666666]
    """
    total = sum(counts)
    return [total / (len(counts) * count) for count in counts]


def stratified_split(strata: Sequence[Hashable], share: float, *, seed: int) -> tuple[list[int], list[int]]:
    """Hold out a share of each stratum, so that both sides have the same mix.

    A stratum gives up at most all but one of its members: what is only held out cannot be learned.

    Args:
        strata: Of each case, such as its label.
        share: To hold out, in (0, 1).
        seed: Of the choice.

    Returns:
        Positions of the cases that stay, and of those that are held out, both ascending.

    Raises:
        DataError: Nothing could be held out.

    Example:
        >>> kept, held_out = stratified_split(["a"] * 8 + ["b"] * 4, 0.25, seed=0)
        >>> len(kept), sum(position < 8 for position in held_out), sum(position >= 8 for position in held_out)
        (9, 2, 1)
    """
    members: dict[Hashable, list[int]] = defaultdict(list)
    for position, stratum in enumerate(strata):
        members[stratum].append(position)
    rng = np.random.default_rng(seed)
    held_out: list[int] = []
    # What the rounding leaves over is carried on, so that many small strata together give their share.
    owed = 0.0
    for positions in members.values():
        owed += share * len(positions)
        count = min(math.floor(owed + 0.5), len(positions) - 1)
        owed -= count
        held_out += rng.permutation(positions)[:count].tolist()
    if not held_out:
        raise DataError(
            f"expected enough examples to hold out {share:.0%} of them for evaluation, found {len(strata)}",
            remedy="give a dev file, or more examples",
        )
    chosen = set(held_out)
    return [position for position in range(len(strata)) if position not in chosen], sorted(held_out)


def grouped_split(groups: Sequence[str], share: float, *, seed: int) -> tuple[list[int], list[int]]:
    """Hold out whole groups, such as articles, until the share of the cases is reached.

    Args:
        groups: Of each case.
        share: To hold out, in (0, 1).
        seed: Of the choice.

    Returns:
        Positions of the cases that stay, and of those that are held out, both ascending.

    Raises:
        DataError: There is only one group.
    """
    names = sorted(set(groups))
    if len(names) < 2:
        raise DataError("expected at least two articles to hold one out, found one", remedy="give a dev file")
    sizes = Counter(groups)
    held: set[str] = set()
    count = 0
    for number in np.random.default_rng(seed).permutation(len(names))[:-1].tolist():
        if count >= share * len(groups):
            break
        held.add(names[number])
        count += sizes[names[number]]
    kept = [position for position, group in enumerate(groups) if group not in held]
    return kept, [position for position, group in enumerate(groups) if group in held]


def input_of(example: Example) -> tuple[str, ...]:
    """The part of an example that a model sees."""
    if isinstance(example, TextExample):
        return example.texts
    return (example.text,) if isinstance(example, TaggedExample) else (example.question, example.context)


def duplicates(train: Sequence[Example], other: Sequence[Example]) -> int:
    """How many examples of the other set have an input that the training set has too.

    Case and spaces do not count.

    Example:
        >>> duplicates([TextExample(("A joy.",))], [TextExample(("a  joy.",)), TextExample(("Dull.",))])
        1
    """
    known = {_normal(example) for example in train}
    return sum(_normal(example) in known for example in other)


def _normal(example: Example) -> tuple[str, ...]:
    return tuple(" ".join(text.lower().split()) for text in input_of(example))


def is_missing(value: Any) -> bool:
    """Whether a cell holds no value: None, NaN as a number or as text, or nothing but spaces.

    Example:
        >>> [is_missing(value) for value in (None, float("nan"), "NaN", " ", "0", 0, "none of these")]
        [True, True, True, True, False, False, False]
    """
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or (isinstance(value, str) and value.strip().lower() in ("", "nan"))


def pick(items: Sequence[T], positions: Sequence[int]) -> list[T]:
    """The items at these positions."""
    return [items[position] for position in positions]
