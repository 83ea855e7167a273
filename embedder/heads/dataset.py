"""The data of a run: train, dev and test read, split where one is missing, and checked against each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likewise.embedder.heads.data import (
    Example,
    QuestionExample,
    TaggedExample,
    TextExample,
    count_labels,
    duplicates,
    grouped_split,
    pick,
    stratified_split,
)
from likewise.embedder.heads.readers import Reading, locate, read_examples
from likewise.errors import UsageError


@dataclass(frozen=True)
class Data:
    """The examples of a run.

    Attributes:
        train: To learn from.
        dev: To choose among models; empty if nothing is held out.
        test: For the final score; empty if there is none.
        facts: Sources, sizes and label counts, for the model card.
        notes: What a person should know.
    """

    train: list[Example]
    dev: list[Example]
    test: list[Example]
    facts: Mapping[str, Any]
    notes: Sequence[str]


def load_data(
    data: str,
    reading: Reading,
    *,
    dev: str | None = None,
    test: str | None = None,
    dev_share: float = 0.1,
    seed: int = 0,
    limit: int | None = None,
) -> Data:
    """Read the files of a run, split off a dev set if there is none, and look for what is wrong with them.

    Args:
        data: A file, a folder of files named train, dev and test, or a Hugging Face data set.
        reading: The kind of task, and how its files are read.
        dev: File for choosing among models.
        test: File for the final score.
        dev_share: Share of the training data to hold out if there is no dev file, in [0, 1).
        seed: Of these choices.
        limit: Most training examples to use, drawn with the seed as files may be sorted by label; for trials.

    Raises:
        DataError: A file cannot be read (see `readers`), or is too small to hold anything out.
    """
    if not 0 <= dev_share < 1:
        raise UsageError(f"expected a dev share in [0, 1), found {dev_share}")
    places = locate(data, dev=dev, test=test, reading=reading)
    notes: list[str] = []
    parts: dict[str, list[Example]] = {"train": [], "dev": [], "test": []}
    facts: dict[str, Any] = {}
    for part, (source, split) in places.items():
        loaded = read_examples(source, reading, split=split)
        parts[part] = loaded.examples
        facts[part] = f"{len(loaded.examples):,} examples of {Path(loaded.source).name}"
        notes += [f"{part}: {note}" for note in loaded.notes]
        if part == "train":
            facts["columns"] = loaded.columns
    drawn_note = ""
    if limit is not None and limit < len(parts["train"]):
        drawn = np.random.default_rng(seed).permutation(len(parts["train"]))[:limit]
        parts["train"] = pick(parts["train"], np.sort(drawn).tolist())
        drawn_note = f", of {limit:,} that were drawn with seed {seed}"
        facts["train"] = f"{limit:,} examples, drawn with seed {seed}"
    if not parts["dev"] and dev_share:
        kept, held_out = _split(parts["train"], dev_share, seed)
        parts["dev"], parts["train"] = pick(parts["train"], held_out), pick(parts["train"], kept)
        facts["train"] = f"{len(kept):,} examples" + drawn_note
        facts["dev"] = f"{len(held_out):,} examples, held out of the training data with seed {seed}"
    facts |= _label_facts(parts["train"])
    notes += _notes(parts)
    return Data(parts["train"], parts["dev"], parts["test"], facts, notes)


def _split(examples: Sequence[Example], share: float, seed: int) -> tuple[list[int], list[int]]:
    first = examples[0]
    if isinstance(first, QuestionExample):
        return grouped_split(
            [example.title for example in examples if isinstance(example, QuestionExample)], share, seed=seed
        )
    strata: list[Any] = []
    for example in examples:
        if isinstance(example, TaggedExample):
            strata.append(any(tag != "O" for tag in example.tags or ()))
        elif isinstance(example, TextExample):
            strata.append(None if isinstance(example.label, float) else example.label)
    return stratified_split(strata, share, seed=seed)


def _label_facts(examples: Sequence[Example]) -> dict[str, Any]:
    labels: list[str] = []
    for example in examples:
        if isinstance(example, TextExample) and isinstance(example.label, str | tuple):
            labels += [example.label] if isinstance(example.label, str) else example.label
        elif isinstance(example, TaggedExample):
            labels += [tag[2:] for tag in example.tags or () if tag[0] in "BS"]
    numbers = [e.label for e in examples if isinstance(e, TextExample) and isinstance(e.label, float)]
    if numbers:
        return {
            "values": f"{min(numbers):g} to {max(numbers):g}, mean {math.fsum(numbers) / len(numbers):.3g}"
        }
    counts = count_labels(labels)
    if not counts:
        return {}
    shown = ", ".join(f"{name} {count:,}" for name, count in list(counts.items())[:20])
    more = f" and {len(counts) - 20:,} more" if len(counts) > 20 else ""
    return {"labels": shown + more}


def _notes(parts: Mapping[str, Sequence[Example]]) -> list[str]:
    notes = []
    for part in ("dev", "test"):
        if parts[part] and (same := duplicates(parts["train"], parts[part])):
            notes.append(
                f"{same:,} of {len(parts[part]):,} {part} examples are in the training data too: "
                "their scores are too good"
            )
        known, found = _labels(parts["train"]), _labels(parts[part])
        if known and (unknown := sorted(found - known)):
            names = ", ".join(unknown[:5]) + (" ..." if len(unknown) > 5 else "")
            notes.append(f"{part}: labels that the training data lack and that count as wrong: {names}")
    if not parts["dev"] and not parts["test"]:
        notes.append("nothing is held out: no score will be known")
    return notes


def _labels(examples: Sequence[Example]) -> set[str]:
    found: set[str] = set()
    for example in examples:
        if isinstance(example, TextExample) and isinstance(example.label, str | tuple):
            found.update([example.label] if isinstance(example.label, str) else example.label)
        elif isinstance(example, TaggedExample):
            found.update(example.tags or ())
    return found
