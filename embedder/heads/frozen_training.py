"""Train a head on sentence vectors that are computed once: a probe by scikit-learn, or a small network.

An epoch then costs the head alone. The probe is logistic regression, or ridge regression for numbers, whose
regularisation is chosen by cross-validation: the usual measure of what a frozen encoder knows.
"""

from __future__ import annotations

import hashlib
import shutil
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.embedder.encoder import Encoder
from likewise.embedder.events import Listener
from likewise.embedder.heads.classification import Classification
from likewise.embedder.heads.data import Example
from likewise.embedder.heads.dataset import Data
from likewise.embedder.heads.evaluation import evaluate
from likewise.embedder.heads.finetune import FinetuneResult, Run, spread_of
from likewise.embedder.heads.finetune_run import Say
from likewise.embedder.heads.finetune_settings import FinetuneSettings
from likewise.embedder.heads.frozen import (
    FrozenHead,
    Layers,
    TextVectors,
    Vectors,
    features_of,
    load_encoder,
    save_frozen,
)
from likewise.embedder.heads.losses import HeadObjective
from likewise.embedder.heads.regression import Regression
from likewise.embedder.heads.sequences import SequenceTask
from likewise.embedder.heads.tasks import learn_task
from likewise.embedder.heads.vector_cache import VectorCache
from likewise.embedder.heads.writing import write_report
from likewise.embedder.logs import CsvLog, JsonLog
from likewise.embedder.objectives import Loss
from likewise.embedder.training import TrainingResult, train
from likewise.errors import UsageError

# Strengths that cross-validation chooses among, and examples and classes that it is worth doing it on.
_STRENGTHS = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)
_CROSS_VALIDATED = 10_000
_PROBED_CLASSES = 200
_HIDDEN = 256


@dataclass(frozen=True, eq=False)
class VectorBatch:
    """Features with targets.

    Attributes:
        vectors: float32 of shape (B, inputs).
        targets: First dimension B.
        weights: float32 of shape (B,).
    """

    vectors: Tensor
    targets: Tensor
    weights: Tensor

    @property
    def tokens(self) -> int:
        """Number of examples: there are no tokens."""
        return len(self.vectors)

    def to(self, device: torch.device) -> VectorBatch:
        """The same batch on another device."""
        return VectorBatch(self.vectors.to(device), self.targets.to(device), self.weights.to(device))


class ShuffledVectors:
    """All examples as vectors, in batches of random order.

    Args:
        features: float32 of shape (examples, inputs).
        targets: First dimension examples.
        weights: float32 of shape (examples,).
        size: Examples in a batch.
        seed: Of the order.
    """

    def __init__(
        self, features: Vectors, targets: NDArray[Any], weights: Vectors, *, size: int, seed: int
    ) -> None:
        self._arrays = (features, targets, weights)
        self._size, self._seed = size, seed
        digest = hashlib.blake2b(repr((size, seed)).encode(), digest_size=8)
        for array in self._arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        self.fingerprint = digest.hexdigest()

    def length(self, epoch: int) -> int:
        """Number of batches, the same in every epoch."""
        return -(-len(self._arrays[0]) // self._size)

    def batch(self, epoch: int, index: int) -> Sequence[VectorBatch]:
        """One batch, as the only item of a list."""
        order = np.random.default_rng((self._seed, epoch)).permutation(len(self._arrays[0]))
        chosen = order[index * self._size : (index + 1) * self._size]
        return [VectorBatch(*(torch.from_numpy(array[chosen]) for array in self._arrays))]


class VectorObjective:
    """The objective of a task, on features instead of tokens.

    Args:
        objective: Of the task.
    """

    def __init__(self, objective: HeadObjective) -> None:
        self._objective = objective
        self.name = objective.name

    def prepare(
        self, examples: Sequence[VectorBatch], *, draw: int | None, progress: float = 0.0
    ) -> VectorBatch:
        """The batch as it is."""
        [batch] = examples
        return batch

    def counts(self, batch: VectorBatch) -> dict[str, int]:
        """One prediction for each example."""
        return {self.name: len(batch.vectors)}

    def loss(self, model: nn.Module, batch: VectorBatch) -> Loss:
        """Loss of a head."""
        stand_in: Any = batch  # has targets and weights, which is all that these losses read
        return self._objective.loss_of(model(batch.vectors), stand_in)


def finetune_frozen(
    data: Data,
    folder: Path,
    settings: FinetuneSettings,
    *,
    listeners: Sequence[Listener] = (),
    say: Say = lambda message: None,
    progress: Callable[[int, int], None] | None = None,
) -> FinetuneResult:
    """Train a head on frozen sentence vectors; see `finetune.finetune`."""
    assert settings.frozen is not None
    if settings.length is not None or settings.lora is not None:
        raise UsageError("a frozen encoder cuts texts as it always does; leave out the length and LoRA")
    reading = settings.reading
    learned = learn_task(
        reading.kind, data.train, balanced=settings.balanced, pair=reading.pair, long_text=settings.long_text
    )
    assert isinstance(learned, SequenceTask)
    task = learned
    encoder = load_encoder(settings.model, offline=settings.offline)
    for notice in encoder.notices:
        say(notice)
    cache = VectorCache(
        hashlib.sha256(f"{encoder.fingerprint} {settings.long_text}".encode()).hexdigest(), encoder.dimension
    )
    vectors = TextVectors(encoder, settings.long_text, cache=cache, progress=progress)
    features = features_of(data.train, vectors, pair=reading.pair)
    if vectors.truncated:
        say(
            f"{vectors.truncated:,} training texts are longer than {encoder.max_tokens} tokens and were cut; "
            "--long-text windows uses all of them"
        )
    targets = np.stack([task.target(example) for example in data.train])
    weights = np.array([task.weight(target) for target in targets], dtype=np.float32)
    splits = {"dev": data.dev, "test": data.test}
    held_out = {
        split: features_of(examples, vectors, pair=reading.pair)
        for split, examples in splits.items()
        if examples
    }
    work = folder / "training"
    rates = settings.rates or (settings.training.learning_rate,)
    plan = [(rate, settings.training.seed) for rate in rates]
    if settings.frozen == "probe":  # has neither a rate nor chance
        plan = plan[:1]
    runs: list[Run] = []
    heads: list[Layers] = []
    best = 0
    for rate, seed in plan:
        result: TrainingResult | None = None
        if settings.frozen == "probe":
            layers = _probe(task, features, targets, weights, say)
        else:
            watched = (data.dev, held_out["dev"]) if data.dev else None
            layers, result = _network(
                task, encoder, features, targets, weights, watched, settings, rate, seed, work, listeners
            )
            if result.status == "interrupted":
                return FinetuneResult(
                    folder, "interrupted", runs, best, (), data, vectors.truncated, _counts(layers)
                )
        head = FrozenHead(task, encoder, layers)
        scores = {
            split: task.score(splits[split], head.predict_features(rows)) for split, rows in held_out.items()
        }
        runs.append(Run(rate, seed, result, scores.get("dev", {}), scores.get("test", {})))
        heads.append(layers)
        if runs[-1].dev.get(task.primary, 0.0) > runs[best].dev.get(task.primary, 0.0):
            best = len(runs) - 1
        if len(runs) == len(rates) and settings.frozen != "probe":
            plan += [(plan[best][0], settings.training.seed + more) for more in range(1, settings.seeds)]
    shutil.rmtree(work, ignore_errors=True)
    save_frozen(task, settings.model, encoder, heads[best], folder, head=settings.frozen)
    head = FrozenHead(task, encoder, heads[best])
    reports = [
        evaluate(task, splits[split], head.predict_features(rows), split=split)
        for split, rows in held_out.items()
    ]
    same_rate = [run for run in runs if run.rate == runs[best].rate]
    done = FinetuneResult(
        folder,
        "finished",
        runs,
        best,
        reports,
        data,
        vectors.truncated,
        _counts(heads[best]),
        spread_of(same_rate),
    )
    write_report(done, settings, task)
    return done


def _counts(layers: Layers) -> dict[str, int]:
    return {"head parameters": sum(array.size for array in (*layers.weights, *layers.biases))}


def _probe(
    task: SequenceTask, features: Vectors, targets: NDArray[Any], weights: Vectors, say: Say
) -> Layers:
    """Logistic or ridge regression with cross-validated strength, as one linear layer."""
    mean, scale = _standard(features)
    inputs = (features - mean) / scale
    if isinstance(task, Regression):
        from sklearn.linear_model import RidgeCV

        fitted: Any = RidgeCV(alphas=[1 / strength for strength in _STRENGTHS]).fit(inputs, targets)
        coefficients, intercepts = fitted.coef_[None], np.array([fitted.intercept_])
    elif isinstance(task, Classification):
        coefficients, intercepts = _logistic(task, inputs, targets, weights, say)
    else:
        parts = [
            _logistic_of(inputs, targets[:, column], weights, 1.0)
            if 0 < targets[:, column].sum() < len(targets)
            else (np.zeros((1, inputs.shape[1])), np.array([20.0 if targets[:, column].all() else -20.0]))
            for column in range(targets.shape[1])
        ]
        coefficients = np.concatenate([part[0] for part in parts])
        intercepts = np.concatenate([part[1] for part in parts])
    weight = (coefficients / scale).T
    bias = intercepts - mean @ weight
    return Layers((weight.astype(np.float32),), (bias.astype(np.float32),))


def _logistic(
    task: Classification, inputs: NDArray[Any], targets: NDArray[Any], weights: Vectors, say: Say
) -> tuple[NDArray[Any], NDArray[Any]]:
    if len(task.labels) > _PROBED_CLASSES:
        raise UsageError(
            f"expected at most {_PROBED_CLASSES} labels for a probe, found {len(task.labels):,}",
            remedy="--head linear",
        )
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    strength = 1.0
    folds = min(5, int(np.bincount(targets).min()))
    if folds >= 2:
        some = np.random.default_rng(0).permutation(len(targets))[:_CROSS_VALIDATED]
        folds = min(folds, int(np.bincount(targets[some], minlength=len(task.labels)).min()))
    if folds >= 2:
        splitter = StratifiedKFold(folds, shuffle=True, random_state=0)
        with _few_iterations():
            scores = [
                cross_val_score(
                    LogisticRegression(C=c, max_iter=200),
                    inputs[some],
                    targets[some],
                    cv=splitter,
                    # Not by accuracy: probabilities should mean what they say.
                    scoring="neg_log_loss",
                ).mean()
                for c in _STRENGTHS
            ]
        strength = _STRENGTHS[int(np.argmax(scores))]
        say(f"strength of the regularisation by {folds}-fold cross-validation: C = {strength:g}")
    coefficients, intercepts = _logistic_of(inputs, targets, weights, strength)
    if len(coefficients) == 1:  # two classes: one logit, which is the second one's against 0
        coefficients = np.concatenate((np.zeros_like(coefficients), coefficients))
        intercepts = np.concatenate(([0.0], intercepts))
    return coefficients, intercepts


def _logistic_of(
    inputs: NDArray[Any], targets: NDArray[Any], weights: Vectors, strength: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    from sklearn.linear_model import LogisticRegression

    with _few_iterations():
        fitted = LogisticRegression(C=strength, max_iter=500).fit(inputs, targets, sample_weight=weights)
    return fitted.coef_, fitted.intercept_


def _few_iterations() -> warnings.catch_warnings:
    """Without what scikit-learn says of an optimum that is near but not reached: it is as good."""
    return warnings.catch_warnings(action="ignore")


def _standard(features: Vectors) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and scale of each feature; 1 for one that does not vary."""
    mean, scale = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
    return mean, np.where(scale > 1e-8, scale, 1.0)


def _network(
    task: SequenceTask,
    encoder: Encoder,
    features: Vectors,
    targets: NDArray[Any],
    weights: Vectors,
    watched: tuple[Sequence[Example], Vectors] | None,
    settings: FinetuneSettings,
    rate: float,
    seed: int,
    work: Path,
    listeners: Sequence[Listener],
) -> tuple[Layers, TrainingResult]:
    """A linear layer or two, trained by the one loop on standardised features."""
    mean, scale = _standard(features)
    inputs = ((features - mean) / scale).astype(np.float32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        parts: list[nn.Module] = [nn.Linear(inputs.shape[1], task.outputs)]
        if settings.frozen == "mlp":
            parts = [
                nn.Linear(inputs.shape[1], _HIDDEN),
                nn.ReLU(),
                nn.Dropout(0.1),
                nn.Linear(_HIDDEN, task.outputs),
            ]
        model = nn.Sequential(*parts)
    batches = ShuffledVectors(inputs, targets, weights, size=settings.batch_size, seed=seed)
    training = replace(
        settings.training,
        learning_rate=rate,
        seed=seed,
        precision="float32",
        evaluate_every=settings.training.evaluate_every or batches.length(0),
        log_every=max(1, batches.length(0) // 2),
        save_every=None,
        watch=task.primary,
        watch_mode="max",
    )

    def held_out(_: nn.Module) -> dict[str, float]:
        assert watched is not None
        examples, rows = watched
        head = FrozenHead(task, encoder, _layers(model, mean, scale))
        return task.score(examples, head.predict_features(rows))

    name = f"run-{rate:g}-{seed}"
    result = train(
        model,
        VectorObjective(task.objective(pad_id=0)),
        batches,
        training,
        folder=work / name / "checkpoints",
        evaluate=held_out if watched else None,
        listeners=[CsvLog(work / name / "train.csv"), JsonLog(work / name / "log.jsonl"), *listeners],
        identity={"encoder": encoder.fingerprint, "head": settings.frozen},
    )
    return _layers(model, mean, scale), result


def _layers(model: nn.Module, mean: NDArray[np.float64], scale: NDArray[np.float64]) -> Layers:
    """The trained layers as arrays; the standardisation goes into the first one."""
    linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
    weights = [layer.weight.detach().numpy().T.astype(np.float64) for layer in linear]
    biases = [layer.bias.detach().numpy().astype(np.float64) for layer in linear]
    weights[0] = weights[0] / scale[:, None]
    biases[0] = biases[0] - mean @ weights[0]
    return Layers(
        tuple(weight.astype(np.float32) for weight in weights),
        tuple(bias.astype(np.float32) for bias in biases),
    )
