"""A model and two objectives that train in milliseconds; run as a script, one process of a training run."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from likewise.embedder.distributed import world
from likewise.embedder.objectives import Loss, Metric, Term
from likewise.embedder.training import train
from likewise.embedder.training_settings import TrainingSettings


class ToyBatch:
    def __init__(self, ids: Tensor, targets: Tensor) -> None:
        self.ids, self.targets = ids, targets

    @property
    def tokens(self) -> int:
        return len(self.ids)

    def to(self, device):
        return self


class ToyModel(nn.Module):
    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(11, 8)
        self.middle = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(8, 11)
        self.head.weight = self.embeddings.weight  # tied, as the heads of language models are

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.dropout(self.norm(self.middle(self.embeddings(ids)))))


class NextNumber:
    """Predict (number + 1) % 11 and, as a second term over half of the cases, whether it is even."""

    def __init__(self, terms: int = 2, poison: int | None = None) -> None:
        self.name = f"toy{terms}"
        self.terms = terms
        self.poison = poison
        self.calls = 0

    def prepare(self, examples, *, draw, progress=0.0):
        # As a dynamic mask would: which numbers are asked for depends on the epoch.
        ids = torch.tensor([(number + (draw or 0)) % 11 for number in examples])
        return ToyBatch(ids, (ids + 1) % 11)

    def counts(self, batch):
        counts = {"next": len(batch.ids)}
        if self.terms == 2:
            counts["even"] = int((batch.ids % 2 == 0).sum())
        return counts

    def loss(self, model, batch):
        logits = model(batch.ids)
        self.calls += 1
        sums = nn.functional.cross_entropy(logits, batch.targets, reduction="sum")
        if self.calls == self.poison:
            sums = sums * float("nan")
        terms = [Term("next", sums, len(batch.ids))]
        if self.terms == 2:
            even = batch.ids % 2 == 0
            terms.append(Term("even", logits[even].square().sum(), int(even.sum()), weight=0.5))
        right = (logits.argmax(-1) == batch.targets).sum()
        return Loss(tuple(terms), {"accuracy": Metric(right, len(batch.ids))})


class Shuffled:
    """Batches of different sizes in an order that depends on the epoch."""

    fingerprint = "toy"

    def length(self, epoch):
        return 7

    def batch(self, epoch, index):
        generator = torch.Generator().manual_seed(1000 * epoch + index)
        return torch.randint(0, 11, (3 + index % 4,), generator=generator).tolist()


def toy_model(dropout: float = 0.1) -> ToyModel:
    torch.manual_seed(7)
    return ToyModel(dropout)


def toy_run(folder: Path, steps: int, accumulation: int, *, world=None, listeners=()):
    """Train anew, or go on, with checkpoints in the folder; the result and the weights."""
    model = toy_model()
    settings = TrainingSettings(
        steps=steps, learning_rate=0.01, accumulation=accumulation, log_every=1, precision="float32"
    )
    result = train(model, NextNumber(), Shuffled(), settings, folder=folder, listeners=listeners, world=world)
    return result, model.state_dict()


def main() -> None:
    """Run each `steps:accumulation` of the arguments in the folder that is the first; save the weights.

    After step 5 the process says "ready" and waits for a line, if the second argument is "wait".
    """
    folder, wait, *runs = sys.argv[1:]

    def listen(event):
        if wait == "wait" and type(event).__name__ == "Progress" and event.step == 5:
            print("ready", flush=True)
            sys.stdin.readline()

    with world() as here:
        for run in runs:
            place = Path(folder) / run.replace(":", "-")
            result, weights = toy_run(place, *map(int, run.split(":")), world=here, listeners=[listen])
            if here.leads:
                torch.save(weights, place / "weights.pt")
                print(result.status, result.step, flush=True)


if __name__ == "__main__":
    main()
