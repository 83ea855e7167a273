"""Any number of labels for a text or a pair of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.heads.data import Example, input_of, label_names
from likewise.embedder.heads.metrics import multilabel as metrics
from likewise.embedder.heads.sequences import SequenceTask, label_of
from likewise.embedder.heads.task import Encoded, Mistake, Scorer
from likewise.errors import DataError

if TYPE_CHECKING:
    from likewise.embedder.heads.losses import MultiLabelObjective


@dataclass(frozen=True, eq=False)
class LabelsPrediction:
    """Labels with probabilities of their own.

    Attributes:
        labels: Those with a probability of at least a half, likeliest first.
        names: All labels.
        probabilities: Of all labels, float64 of shape (labels,), each in [0, 1].
    """

    labels: tuple[str, ...]
    names: tuple[str, ...]
    probabilities: NDArray[np.float64]

    def to_json(self) -> dict[str, Any]:
        """Labels, and the probabilities of the ten likeliest."""
        order = np.argsort(-self.probabilities, kind="stable")[:10].tolist()
        top = {self.names[number]: round(float(self.probabilities[number]), 6) for number in order}
        return {"labels": list(self.labels), "probabilities": top}


class MultiLabel(SequenceTask):
    """Classification with any number of labels, even none."""

    kind = "multilabel"
    primary = "micro_f1"
    problem_type = "multi_label_classification"

    @classmethod
    def learn(cls, examples: Sequence[Example], **options: Any) -> MultiLabel:
        """With the labels of the training examples.

        Args:
            examples: All labelled.
            options: As for `SequenceTask`.

        Raises:
            DataError: No example has a label.
        """
        labels = label_names([label for example in examples for label in label_of(example)])
        if not labels:
            raise DataError("expected at least one label, found none in any example")
        return cls(labels, **options)

    def target(self, example: Example) -> NDArray[Any]:
        """1 for its labels, 0 for the others; labels that the model does not know are left out."""
        given = set(label_of(example) or ())
        return np.array([label in given for label in self.labels], dtype=np.float32)

    def objective(self, *, pad_id: int) -> MultiLabelObjective:
        """Binary cross-entropy."""
        from likewise.embedder.heads.losses import MultiLabelObjective

        return MultiLabelObjective(pad_id=pad_id)

    def predict(
        self, examples: Sequence[Example], encoded: Encoded, logits: Sequence[NDArray[np.float32]]
    ) -> list[LabelsPrediction]:
        """The labels of each example that are likelier than not."""
        return self.from_logits(self.pooled(encoded, logits))

    def from_logits(self, logits: NDArray[np.float32]) -> list[LabelsPrediction]:
        """The labels of each row of logits that are likelier than not."""
        probabilities = 1 / (1 + np.exp(-logits.astype(np.float64)))
        found = []
        for row in probabilities:
            order = np.argsort(-row, kind="stable").tolist()
            chosen = tuple(self.labels[number] for number in order if row[number] >= 0.5)
            found.append(LabelsPrediction(chosen, self.labels, row))
        return found

    def scorer(self, examples: Sequence[Example], predictions: Sequence[LabelsPrediction]) -> Scorer:
        """Micro F1, macro F1 and the share of examples whose labels are all right."""
        # A label that only the test set has must cost recall, so it gets a column too.
        extra = sorted({label for e in examples for label in label_of(e)} - set(self.labels))
        names = {name: number for number, name in enumerate((*self.labels, *extra))}
        gold = np.zeros((len(examples), len(names)), dtype=bool)
        predicted = np.zeros_like(gold)
        for row, (example, found) in enumerate(zip(examples, predictions, strict=True)):
            gold[row, [names[label] for label in label_of(example)]] = True
            predicted[row, [names[label] for label in found.labels]] = True
        return lambda chosen: {
            "micro_f1": metrics.micro_f1(gold[chosen], predicted[chosen]),
            "macro_f1": metrics.macro_f1(gold[chosen], predicted[chosen]),
            "subset_accuracy": metrics.subset_accuracy(gold[chosen], predicted[chosen]),
        }

    def mistakes(self, examples: Sequence[Example], predictions: Sequence[LabelsPrediction]) -> list[Mistake]:
        """Examples with a wrong set of labels, those with the most sure wrong decision first."""
        wrong = []
        for example, found in zip(examples, predictions, strict=True):
            gold = label_of(example)
            if set(gold) != set(found.labels):
                off = (self.target(example) > 0.5) != (found.probabilities >= 0.5)
                sure = np.abs(found.probabilities - 0.5)[off].max() + 0.5 if off.any() else 0.5
                text = "\t".join(input_of(example))
                wrong.append(Mistake(text, ", ".join(sorted(gold)), ", ".join(found.labels), float(sure)))
        return sorted(wrong, key=lambda mistake: -mistake.confidence)
