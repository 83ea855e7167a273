"""Runs a cross-encoder with torch, converts it for OpenVINO, and checks that both give the same scores.

Imports torch and transformers: searching with a prepared cross-encoder must never get here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex
from typing import Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.embedder.batching import Batch, PairBatch
from likewise.embedder.runtimes.base import Runtime
from likewise.embedder.runtimes.convert import convert
from likewise.embedder.runtimes.openvino import OpenVinoRuntime, Refused, compile_model, keep, refuse
from likewise.embedder.runtimes.torch import quiet
from likewise.embedder.spec import ModelSpec, read_config
from likewise.errors import EncoderError

# Most that a logit may differ from torch. Order is all that counts, and scores of neighbours often differ by
# less than bfloat16 can tell: only float32 keeps this.
LOGIT_TOLERANCE = 1e-3


class PairModel(nn.Module):
    """A sequence classifier with one label as a function from token ids to logits.

    Args:
        classifier: Of transformers.
        segments: Whether it takes token types.
    """

    def __init__(self, classifier: nn.Module, *, segments: bool) -> None:
        super().__init__()
        self.classifier = classifier
        self._segments = segments

    @property
    def inputs(self) -> list[str]:
        """Names of the arrays of a `PairBatch` that it takes."""
        return ["input_ids", "attention_mask", *(["token_type_ids"] if self._segments else [])]

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Logits of the pairs, shape (pairs, 1), from int64 arrays (pairs, tokens)."""
        segments = {"token_type_ids": token_type_ids} if self._segments else {}
        output = self.classifier(input_ids=input_ids, attention_mask=attention_mask, **segments)
        logits: Tensor = output.logits.float()
        return logits


class TorchPairRuntime:
    """A cross-encoder in torch, float32.

    Args:
        model: As `load_pair_model` gives it.
        device: Where it computes.
    """

    concurrency = 1
    batch_tokens = 8192

    def __init__(self, model: PairModel, device: torch.device) -> None:
        self.model = model.to(device)
        self._device = device

    @property
    def name(self) -> str:
        """Such as "torch cpu float32"."""
        return f"torch {self._device} float32"

    def run(self, batch: Batch) -> NDArray[np.float32]:
        """Logits of the pairs of a `PairBatch`, float32 of shape (pairs, 1)."""
        with torch.inference_mode():
            inputs = [torch.from_numpy(array).to(self._device) for array in batch]
            logits: NDArray[np.float32] = self.model(*inputs).cpu().numpy()
        return logits


def load_pair_model(spec: ModelSpec, *, attention: Literal["fused", "written out"] = "fused") -> PairModel:
    """Load a cross-encoder's weights, in evaluation mode, float32, on the CPU.

    Raises:
        EncoderError: The weights or the tokenizer are missing, damaged or do not fit.
    """
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    try:
        with quiet():
            classifier, loading = AutoModelForSequenceClassification.from_pretrained(
                str(spec.transformer),
                local_files_only=True,
                dtype=torch.float32,
                attn_implementation=None if attention == "fused" else "eager",
                output_loading_info=True,
            )
            takes = AutoTokenizer.from_pretrained(str(spec.transformer), local_files_only=True)
    except Exception as error:  # each architecture and file format has exceptions of its own
        if "auto_map" in read_config(spec.transformer / "config.json"):
            raise EncoderError(
                f"{spec.name} needs Python code that comes with its weights, and likewise runs no such code",
                remedy="choose a model whose architecture transformers knows",
            ) from error
        raise EncoderError(
            f"cannot load the weights in {spec.transformer}: {error}",
            remedy="save or download the model again",
        ) from error
    if missing := sorted(loading["missing_keys"]):
        raise EncoderError(
            f"the weights in {spec.transformer} lack {len(missing)} of the model's tensors: {missing[0]}",
            remedy="choose a cross-encoder: a model that was trained to score pairs of texts",
        )
    return PairModel(classifier, segments="token_type_ids" in takes.model_input_names).eval()


def convert_pairs(spec: ModelSpec, batches: Sequence[PairBatch], home: Path) -> OpenVinoRuntime:
    """Convert a cross-encoder into a folder, compare it with torch, and keep it if they agree.

    Raises:
        Refused: They do not, or it cannot be converted.
    """
    reference = TorchPairRuntime(load_pair_model(spec), torch.device("cpu"))
    reason = ""
    attempts: tuple[Literal["fused", "written out"], ...] = ("fused", "written out")
    for attention in attempts:
        model = reference.model if attention == "fused" else load_pair_model(spec, attention=attention)
        generation = home / token_hex(4)
        try:
            convert(model, batches[0], generation, inputs=model.inputs)
        except EncoderError as error:
            reason = str(error).splitlines()[0]
            continue
        candidate = compile_model(generation, "f32")
        worst = logit_difference(reference, candidate, batches)
        if worst <= LOGIT_TOLERANCE:
            keep(candidate, generation, "f32", 1.0 - worst)
            return candidate
        reason = f"in OpenVINO its scores differ from torch (by {worst:.4f}, expected {LOGIT_TOLERANCE:g})"
    refuse(home, reason)
    raise Refused(reason)


def logit_difference(reference: Runtime, candidate: Runtime, batches: Sequence[PairBatch]) -> float:
    """Largest difference of two runtimes' logits, relative to 1 or the logit; infinite without numbers."""
    worst = 0.0
    for batch in batches:
        # A runtime looks up its inputs by name, so any named tuple with them will do.
        expected, found = (runtime.run(cast(Batch, batch)) for runtime in (reference, candidate))
        if expected.shape != found.shape or not np.isfinite(found).all():
            return float("inf")
        worst = max(worst, float((np.abs(found - expected) / np.maximum(1.0, np.abs(expected))).max()))
    return worst
