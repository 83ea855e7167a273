"""Everything that can be set about a siamese training run, beside the loop's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from likewise.embedder.prompts import Prompts
from likewise.embedder.siamese.pairs import PairData
from likewise.embedder.siamese.tasks import LossSettings, loss_kind
from likewise.embedder.training_settings import TrainingSettings
from likewise.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """A data set to train on.

    Attributes:
        source: File, folder or `hub:NAME` (see `pair_files.read_rows`), or rows that are read already.
        loss: Name of its loss.
        settings: Constants of the loss.
        weight: Passes over it per epoch.
        columns: Role to column name, for columns with unusual names; "" ignores one.
        score_range: Lowest and highest score there can be, to be mapped to [0, 1].
        prompts: Text put in front of a column, by role.
        split: Of a data set.
    """

    source: str | Path | PairData
    loss: str
    settings: LossSettings = field(default_factory=LossSettings)
    weight: float = 1.0
    columns: Mapping[str, str] = field(default_factory=dict)
    score_range: tuple[float, float] | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    split: str = "train"

    def __post_init__(self) -> None:
        loss_kind(self.loss)

    @property
    def name(self) -> str:
        """Name of the data set in logs and metrics."""
        name = self.source.name if isinstance(self.source, PairData) else str(self.source)
        return Path(name.removeprefix("hub:")).name.split(".")[0] or name


@dataclass(frozen=True, kw_only=True)
class SiameseSettings:
    """What to train, and how.

    Attributes:
        training: Budget, optimiser and the rest. Its `watch` counts only if `watch` below is given.
        encoder: Where training starts; None for the default encoder.
        teacher: Encoder whose vectors are learned, for the losses `distillation`, `translation` and
            `crosslingual`.
        pooling: Instead of what the encoder says.
        dense: Width of a new Dense module.
        max_tokens: A lower limit than the encoder's own.
        prompts: Of the trained encoder, instead of its own.
        dropout: Probability of dropping a value, instead of the encoder's own; without any, texts get the
            same vectors in training as after it, which losses that keep vectors in their place want.
        batch_size: Rows in a batch.
        part_tokens: Encode in parts of so many tokens, so that large batches fit into memory.
        bucketed: Put rows of similar length into a batch.
        freeze: Keep the embeddings and so many of the lowest layers as they are; None trains everything.
        cache_frozen: Gigabytes of disk, at most, for what frozen layers make of each distinct text, so that
            it is computed once; None computes it in every step.
        rows: Train these rows of the token table alone, each given by the ids of the tokens that share it;
            None trains everything.
        blend: Share of the base in the final weights, in [0, 1): averaging guards against forgetting.
        held_out: Share of the first data set kept for evaluation if no other data are given for it.
        watch: Metric that decides which weights are best; None for the first.
        keep_worse: Save the trained weights even if the watched metric did not rise.
        skip_empty: Leave out rows with an empty text.
        device: Such as "cpu" or "cuda"; "auto" for the fastest.
        offline: Never ask the network for a model.
        tensorboard: Log for TensorBoard too.
    """

    training: TrainingSettings
    encoder: str | None = None
    teacher: str | None = None
    pooling: str | None = None
    dense: int | None = None
    max_tokens: int | None = None
    prompts: Prompts | None = None
    dropout: float | None = None
    batch_size: int = 32
    part_tokens: int | None = None
    bucketed: bool = True
    freeze: int | None = None
    cache_frozen: float | None = None
    rows: tuple[tuple[int, ...], ...] | None = None
    blend: float = 0.0
    held_out: float = 0.1
    watch: str | None = None
    keep_worse: bool = False
    skip_empty: bool = False
    device: str | None = "auto"
    offline: bool | None = None
    tensorboard: bool = False

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise UsageError(f"expected a batch size of at least 1, found {self.batch_size}")
        if not 0 <= self.held_out < 1 or not 0 <= self.blend < 1:
            raise UsageError(
                f"expected a held-out share and a blend in [0, 1), found {self.held_out} and {self.blend}"
            )
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise UsageError(f"expected a dropout in [0, 1), found {self.dropout}")
        if self.rows is not None and (self.freeze is not None or self.blend):
            raise UsageError("rows trained alone leave nothing to freeze or to blend with the base")
        if self.cache_frozen is not None and (not self.freeze or not self.cache_frozen > 0):
            raise UsageError(
                f"expected frozen layers and a size above 0 to keep what they make of texts, found "
                f"{self.freeze or 0} layers and {self.cache_frozen} GB",
                remedy="--freeze N --cache-frozen",
            )
        if self.part_tokens is not None and self.part_tokens < 1:
            raise UsageError(f"expected parts of at least 1 token, found {self.part_tokens}")
