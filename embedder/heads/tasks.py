"""The tasks by the name of their kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from likewise.embedder.heads.classification import Classification
from likewise.embedder.heads.data import Example
from likewise.embedder.heads.multilabel import MultiLabel
from likewise.embedder.heads.questions import Questions
from likewise.embedder.heads.readers import Kind
from likewise.embedder.heads.regression import Regression
from likewise.embedder.heads.tagging import Tagging
from likewise.embedder.heads.task import Task


def learn_task(kind: Kind, examples: Sequence[Example], *, balanced: bool = False, **options: Any) -> Task:
    """A task with the labels of its training examples.

    Args:
        kind: Which.
        examples: All labelled.
        balanced: Whether rare labels weigh more; classification only.
        options: Of the task's class.

    Raises:
        DataError: The labels are of no use.
    """
    if kind == "classification":
        return Classification.learn(examples, balanced=balanced, **options)
    if kind == "multilabel":
        return MultiLabel.learn(examples, **options)
    if kind == "regression":
        return Regression(**options)
    return Tagging.learn(examples, **options) if kind == "tagging" else Questions.learn(examples, **options)


def make_task(kind: str, labels: Sequence[str], settings: Mapping[str, Any]) -> Task:
    """A task as it was when its model was saved.

    Raises:
        KeyError: There is no such kind.
    """
    classes: dict[str, Any] = {
        "classification": Classification,
        "multilabel": MultiLabel,
        "regression": Regression,
        "tagging": Tagging,
        "questions": Questions,
    }
    task: Task = classes[kind](tuple(labels), **settings)
    return task
