"""What a task must be able to do, so that training, evaluation and prediction need not know which it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.heads.data import Example
from likewise.embedder.heads.tokens import Window, WindowTokenizer

if TYPE_CHECKING:
    from likewise.embedder.heads.losses import HeadObjective

# Not counted in a loss, as everywhere in this field.
IGNORED = -100

LongText = Literal["first", "windows"]
Scorer = Callable[[NDArray[np.int64]], dict[str, float]]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One window with what should come out.

    Attributes:
        window: Token ids.
        target: What the objective of the task takes: a number, or an array for each label, token or end.
        weight: Factor of its loss; the mean over the training rows is 1.
    """

    window: Window
    target: NDArray[Any]
    weight: float = 1.0

    def __len__(self) -> int:
        return len(self.window)


@dataclass(frozen=True, eq=False)
class Encoded:
    """Examples as windows.

    Attributes:
        windows: Of all examples, those of one example together and in order.
        owner: int64 of shape (windows,): number of the example of each, ascending.
        truncated: Examples of which a part is in no window.
    """

    windows: list[Window]
    owner: NDArray[np.int64]
    truncated: int = 0

    @classmethod
    def of(cls, groups: Sequence[Sequence[Window]], truncated: int = 0) -> Encoded:
        """From the windows of each example; every example has at least one."""
        owner = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        return cls([window for group in groups for window in group], owner, truncated)

    @property
    def long(self) -> int:
        """Examples of several windows."""
        return int((np.bincount(self.owner) > 1).sum()) if len(self.owner) else 0

    def groups(self, values: Sequence[Any]) -> list[list[Any]]:
        """Values of the windows, such as their logits, by example."""
        found: list[list[Any]] = [[] for _ in range(int(self.owner[-1]) + 1 if len(self.owner) else 0)]
        for number, value in zip(self.owner.tolist(), values, strict=True):
            found[number].append(value)
        return found


@dataclass(frozen=True)
class Mistake:
    """A case that the model got wrong.

    Attributes:
        text: What it saw.
        gold: What was right.
        predicted: What it said.
        confidence: How sure it was, in [0, 1]; NaN where the task knows none.
    """

    text: str
    gold: str
    predicted: str
    confidence: float


class Prediction(Protocol):
    """What a model says about one example."""

    def to_json(self) -> dict[str, Any]:
        """As fields of a JSON object."""
        ...


class Task(ABC):
    """A kind of head: how examples become windows and targets, and logits predictions and scores.

    Attributes:
        kind: Name of the kind, such as "classification".
        auto_class: Class of transformers that loads such a model.
        primary: The metric that decides which model is better; higher is better.
        labels: Names of what the head puts out, in order; empty where they have none.
        outputs: Numbers that the head puts out for each text, or for each token.
    """

    kind: str
    auto_class: str
    primary: str
    labels: tuple[str, ...]
    outputs: int
    # What `PretrainedConfig.problem_type` is, for heads where it means something.
    problem_type: str | None = None

    @abstractmethod
    def encode(self, examples: Sequence[Example], tokenizer: WindowTokenizer) -> Encoded:
        """Examples as windows."""

    @abstractmethod
    def rows(self, examples: Sequence[Example], encoded: Encoded) -> list[Row]:
        """Windows with the targets to train on.

        Raises:
            DataError: An example has no label, or one that the task does not know.
        """

    @abstractmethod
    def objective(self, *, pad_id: int) -> HeadObjective:
        """What to minimise."""

    @abstractmethod
    def predict(
        self, examples: Sequence[Example], encoded: Encoded, logits: Sequence[NDArray[np.float32]]
    ) -> list[Any]:
        """A prediction for each example.

        Args:
            examples: Their labels are not looked at.
            encoded: From `encode`.
            logits: Of each window: (outputs,), or (tokens, outputs) for heads on tokens.
        """

    @abstractmethod
    def scorer(self, examples: Sequence[Example], predictions: Sequence[Any]) -> Scorer:
        """A function from positions of examples to the metrics over these, for intervals by resampling."""

    @abstractmethod
    def mistakes(self, examples: Sequence[Example], predictions: Sequence[Any]) -> list[Mistake]:
        """Wrong predictions, the most confident first."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Arguments that make the same task again, as JSON; the labels are kept with the model."""

    def tuned(self, examples: Sequence[Example], predictions: Sequence[Any]) -> Task:
        """The task with thresholds chosen on held-out examples; itself where there is nothing to choose."""
        del examples, predictions
        return self

    def score(self, examples: Sequence[Example], predictions: Sequence[Any]) -> dict[str, float]:
        """Metrics over all examples."""
        return self.scorer(examples, predictions)(np.arange(len(examples)))

    def extra_scores(self, examples: Sequence[Example], predictions: Sequence[Any]) -> Mapping[str, float]:
        """Scores by label or type, for the report."""
        del examples, predictions
        return {}


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """Probabilities over the last axis.

    Example:
        >>> softmax(np.array([0.0, 0.0])).tolist()
        [0.5, 0.5]
    """
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    total: NDArray[np.float64] = shifted / shifted.sum(axis=-1, keepdims=True)
    return total
