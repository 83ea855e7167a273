"""A number for a text or a pair of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.heads.data import Example, input_of
from likewise.embedder.heads.metrics import correlation
from likewise.embedder.heads.sequences import SequenceTask, label_of
from likewise.embedder.heads.task import Encoded, Mistake, Scorer

if TYPE_CHECKING:
    from likewise.embedder.heads.losses import RegressionObjective


@dataclass(frozen=True)
class NumberPrediction:
    """A number.

    Attributes:
        value: On the scale of the training labels.
    """

    value: float

    def to_json(self) -> dict[str, Any]:
        """The value."""
        return {"value": round(self.value, 6)}


class Regression(SequenceTask):
    """Prediction of a number.

    Args:
        labels: Always one name, as Hugging Face wants for each output.
        options: As for `SequenceTask`.
    """

    kind = "regression"
    primary = "spearman"
    problem_type = "regression"

    def __init__(self, labels: Sequence[str] = ("value",), **options: Any) -> None:
        super().__init__(labels, **options)

    def target(self, example: Example) -> NDArray[Any]:
        """The number."""
        return np.array(label_of(example), dtype=np.float32)

    def objective(self, *, pad_id: int) -> RegressionObjective:
        """Squared error."""
        from likewise.embedder.heads.losses import RegressionObjective

        return RegressionObjective(pad_id=pad_id)

    def predict(
        self, examples: Sequence[Example], encoded: Encoded, logits: Sequence[NDArray[np.float32]]
    ) -> list[NumberPrediction]:
        """A number for each example."""
        return self.from_logits(self.pooled(encoded, logits))

    def from_logits(self, logits: NDArray[np.float32]) -> list[NumberPrediction]:
        """A number for each row of logits."""
        return [NumberPrediction(float(value)) for value in logits[:, 0]]

    def scorer(self, examples: Sequence[Example], predictions: Sequence[NumberPrediction]) -> Scorer:
        """Correlations and the mean absolute error."""
        gold = np.array([label_of(example) for example in examples], dtype=np.float64)
        found = np.array([prediction.value for prediction in predictions], dtype=np.float64)
        return lambda chosen: {
            "spearman": correlation.spearman(gold[chosen].tolist(), found[chosen].tolist()),
            "pearson": correlation.pearson(gold[chosen].tolist(), found[chosen].tolist()),
            "mean_absolute_error": float(np.abs(gold[chosen] - found[chosen]).mean()),
        }

    def mistakes(self, examples: Sequence[Example], predictions: Sequence[NumberPrediction]) -> list[Mistake]:
        """All examples, the largest error first."""
        pairs = sorted(
            zip(examples, predictions, strict=True), key=lambda pair: -abs(label_of(pair[0]) - pair[1].value)
        )
        return [
            Mistake(
                "\t".join(input_of(example)), f"{label_of(example):g}", f"{found.value:.3f}", float("nan")
            )
            for example, found in pairs
        ]
