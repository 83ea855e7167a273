"""Converts a model with a head for OpenVINO. Imports torch: runs once per model."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from likewise.embedder.heads.losses import logits_of
from likewise.embedder.heads.scoring import InputBatch
from likewise.embedder.runtimes.openvino import MODEL_FILE, without_telemetry
from likewise.embedder.runtimes.torch import quiet
from likewise.errors import EncoderError


class _Logits(nn.Module):
    """A Hugging Face model as a function from arrays to one array."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        return logits_of(self.model(**inputs)).float()


def convert(model: nn.Module, example: InputBatch, generation: Path, *, segments: bool) -> None:
    """Convert a model into `generation`, without compiling it.

    Args:
        model: A Hugging Face model with a head, in evaluation mode, on the CPU.
        example: Any batch of at least two windows of different length; the converted model takes any shape.
        generation: A folder, created if need be.
        segments: Whether the model takes segment ids.

    Raises:
        EncoderError: OpenVINO cannot convert the model.
    """
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if segments else [])]
    inputs = {name: torch.from_numpy(getattr(example, name).copy()) for name in names}
    generation.mkdir(parents=True, exist_ok=True)
    with without_telemetry() as openvino:
        try:
            # Tracing warns of every Python branch in the model; the comparison judges the result.
            with quiet(), torch.no_grad():
                converted = openvino.convert_model(_Logits(model).eval(), example_input=inputs)
            converted.reshape(
                {node.get_any_name(): openvino.PartialShape([-1, -1]) for node in converted.inputs}
            )
            openvino.save_model(converted, generation / MODEL_FILE, compress_to_fp16=False)
        except Exception as error:  # anything in the model's code or the converter may fail
            raise EncoderError(f"OpenVINO cannot convert this model: {error}") from error
