"""What to fine-tune, and how: settings that are checked when they are set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from likewise.embedder.heads.readers import Reading
from likewise.embedder.heads.task import LongText
from likewise.embedder.training_settings import TrainingSettings
from likewise.errors import UsageError

Head = Literal["probe", "linear", "mlp", "tokens"]


@dataclass(frozen=True, kw_only=True)
class FinetuneSettings:
    """What to fine-tune, and how. The defaults are those of the BERT paper (Devlin et al. 2019, A.3).

    Attributes:
        reading: The kind of task, and how its files are read.
        training: Budget, optimiser and the rest; its learning rate is not used if `rates` has any.
        model: Any encoder; None for the default one.
        batch_size: Examples in a micro-batch.
        length: Most tokens in a window; None for 256, of questions 384, or what the model takes.
        overlap: Tokens that neighbouring windows share; None for the task's default.
        long_text: What happens to longer texts of a classification: "windows" uses all, "first" cuts them.
        balanced: Whether rare labels weigh more.
        rates: Learning rates to try; the best on the dev split is kept.
        seeds: How many runs with different seeds.
        freeze_layers: Lowest layers that do not learn; None freezes the whole encoder below the head.
        lora: Rank of LoRA; None trains the weights themselves.
        frozen: Kind of head on vectors that are computed once: "probe", "linear" or "mlp" on those of texts,
            "tokens" for the model's own head on those of tokens. None trains the encoder too.
        device: Such as "cpu" or "cuda"; None for the CPU, "auto" for the fastest.
        offline: Never ask the network for a model.
    """

    reading: Reading
    training: TrainingSettings
    model: str | None = None
    batch_size: int = 32
    length: int | None = None
    overlap: int | None = None
    long_text: LongText = "windows"
    balanced: bool = False
    rates: tuple[float, ...] = ()
    seeds: int = 1
    freeze_layers: int | None = 0
    lora: int | None = None
    frozen: Head | None = None
    device: str | None = "auto"
    offline: bool | None = None

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.seeds < 1:
            raise UsageError(
                f"expected at least 1 example per batch and 1 seed, found {self.batch_size} and {self.seeds}"
            )
        if self.lora is not None and self.freeze_layers != 0:
            raise UsageError("LoRA freezes all weights but its own; leave out frozen layers")
        on_tokens = self.reading.kind in ("tagging", "questions")
        if self.frozen is not None and on_tokens != (self.frozen == "tokens"):
            wanted = "tokens" if on_tokens else "probe, linear or mlp"
            raise UsageError(
                f"expected the frozen head {wanted} for {self.reading.kind}, found {self.frozen}"
            )
        if self.frozen is not None and self.lora is not None:
            raise UsageError("LoRA trains the encoder, which is frozen; leave out one of the two")
        if self.balanced and self.reading.kind != "classification":
            raise UsageError("class weights are for classification with one label per text")
