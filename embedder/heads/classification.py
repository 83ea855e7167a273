"""One label out of several for a text or a pair of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.heads.data import Example, class_weights, count_labels, input_of, label_names
from likewise.embedder.heads.metrics import classification as metrics
from likewise.embedder.heads.sequences import SequenceTask, label_of
from likewise.embedder.heads.task import Encoded, Mistake, Scorer, softmax
from likewise.errors import DataError

if TYPE_CHECKING:
    from likewise.embedder.heads.losses import ClassificationObjective


@dataclass(frozen=True, eq=False)
class LabelPrediction:
    """A label with its probability.

    Attributes:
        label: The likeliest.
        probability: Of it, in [0, 1].
        labels: All labels.
        probabilities: Of all labels, float64 of shape (labels,).
    """

    label: str
    probability: float
    labels: tuple[str, ...]
    probabilities: NDArray[np.float64]

    def top(self, k: int) -> dict[str, float]:
        """The likeliest labels with their probabilities, best first."""
        order = np.argsort(-self.probabilities, kind="stable")[:k]
        return {self.labels[number]: float(self.probabilities[number]) for number in order.tolist()}

    def to_json(self) -> dict[str, Any]:
        """Label and probability, and the probabilities of the ten likeliest labels."""
        return {
            "label": self.label,
            "probability": round(self.probability, 6),
            "probabilities": {name: round(value, 6) for name, value in self.top(10).items()},
        }


class Classification(SequenceTask):
    """Classification of texts or pairs.

    Args:
        labels: All labels.
        weights: Factor of the loss of each label, or None for equal ones.
        options: As for `SequenceTask`.
    """

    kind = "classification"
    primary = "accuracy"
    problem_type = "single_label_classification"

    def __init__(
        self, labels: Sequence[str], *, weights: Sequence[float] | None = None, **options: Any
    ) -> None:
        super().__init__(labels, **options)
        self._numbers = {label: number for number, label in enumerate(self.labels)}
        self._weights = None if weights is None else list(weights)

    @classmethod
    def learn(cls, examples: Sequence[Example], *, balanced: bool = False, **options: Any) -> Classification:
        """With the labels of the training examples.

        Args:
            examples: All labelled.
            balanced: Whether rare labels weigh more, see `class_weights`.
            options: As for `SequenceTask`.

        Raises:
            DataError: Fewer than two labels.
        """
        found = [str(label_of(example)) for example in examples]
        labels = label_names(found)
        if len(labels) < 2:
            raise DataError(
                f"expected at least two different labels to tell apart, found only {labels[0]!r}"
                if labels
                else "expected at least two different labels to tell apart, found none",
                remedy="check that the label column is the right one",
            )
        counts = count_labels(found)
        weights = class_weights([counts[label] for label in labels]) if balanced else None
        return cls(labels, weights=weights, **options)

    def target(self, example: Example) -> NDArray[Any]:
        """Number of the label."""
        label = label_of(example)
        if label not in self._numbers:
            raise DataError(f"expected a label that the model knows, found {label!r}")
        return np.array(self._numbers[label], dtype=np.int64)

    def weight(self, target: NDArray[Any]) -> float:
        """Weight of the label."""
        return 1.0 if self._weights is None else self._weights[int(target)]

    def objective(self, *, pad_id: int) -> ClassificationObjective:
        """Cross-entropy."""
        from likewise.embedder.heads.losses import ClassificationObjective

        return ClassificationObjective(pad_id=pad_id)

    def predict(
        self, examples: Sequence[Example], encoded: Encoded, logits: Sequence[NDArray[np.float32]]
    ) -> list[LabelPrediction]:
        """The likeliest label of each example."""
        return self.from_logits(self.pooled(encoded, logits))

    def from_logits(self, logits: NDArray[np.float32]) -> list[LabelPrediction]:
        """The likeliest label of each row of logits."""
        probabilities = softmax(logits)
        return [
            LabelPrediction(self.labels[best], float(row[best]), self.labels, row)
            for row, best in zip(probabilities, logits.argmax(axis=-1).tolist(), strict=True)
        ]

    def scorer(self, examples: Sequence[Example], predictions: Sequence[LabelPrediction]) -> Scorer:
        """Accuracy, macro F1 and Matthews' correlation; of two labels also F1 of the second, such as "1"."""
        gold, predicted = self.numbers(examples, predictions)
        binary = len(self.labels) == 2

        def score(chosen: NDArray[np.int64]) -> dict[str, float]:
            counts = metrics.count_classes(gold[chosen], predicted[chosen], len(self.labels))
            scores = {
                "accuracy": metrics.accuracy(counts),
                "macro_f1": metrics.macro_f1(counts),
                "matthews": metrics.matthews(counts),
            }
            if binary:
                second = float(metrics.f1_by_class(counts)[1])
                scores["f1"] = second if second == second else 0.0  # the label does not occur
            return scores

        return score

    def numbers(
        self, examples: Sequence[Example], predictions: Sequence[LabelPrediction]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Gold and predicted class numbers; -1 for a gold label that the model does not know."""
        gold = [self._numbers.get(label_of(example), -1) for example in examples]
        predicted = [self._numbers[prediction.label] for prediction in predictions]
        return np.array(gold, dtype=np.int64), np.array(predicted, dtype=np.int64)

    def extra_scores(
        self, examples: Sequence[Example], predictions: Sequence[LabelPrediction]
    ) -> Mapping[str, float]:
        """F1 of each label that occurs, for at most fifty labels."""
        if len(self.labels) > 50:
            return {}
        counts = metrics.count_classes(*self.numbers(examples, predictions), len(self.labels))
        scores = metrics.f1_by_class(counts).tolist()
        return {
            f"f1 {label}": score for label, score in zip(self.labels, scores, strict=False) if score == score
        }

    def mistakes(self, examples: Sequence[Example], predictions: Sequence[LabelPrediction]) -> list[Mistake]:
        """Wrong labels, the most confident first."""
        wrong = [
            Mistake("\t".join(input_of(example)), str(label_of(example)), found.label, found.probability)
            for example, found in zip(examples, predictions, strict=True)
            if label_of(example) != found.label
        ]
        return sorted(wrong, key=lambda mistake: -mistake.confidence)
