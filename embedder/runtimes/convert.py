"""Converts a torch model for OpenVINO. Imports torch: runs once per model, never in a search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from likewise.embedder.batching import Batch, PairBatch
from likewise.embedder.runtimes.openvino import MODEL_FILE, without_telemetry
from likewise.embedder.runtimes.torch import quiet
from likewise.errors import EncoderError


def convert(model: nn.Module, example: Batch | PairBatch, generation: Path, *, inputs: Sequence[str]) -> None:
    """Convert a torch model into `generation`, without compiling it.

    Args:
        model: In evaluation mode, on the CPU.
        example: Any batch of at least two texts of different length; the converted model takes any shape.
        generation: A folder, created if need be.
        inputs: Names of the arrays of a batch that the model takes, in order.

    Raises:
        EncoderError: OpenVINO cannot convert the model.
    """
    tensors = {name: torch.from_numpy(getattr(example, name).copy()) for name in inputs}
    generation.mkdir(parents=True, exist_ok=True)
    with without_telemetry() as openvino:
        try:
            # Tracing warns of every Python branch in the model; the parity probe is what judges the result.
            with quiet(), torch.no_grad():
                converted = openvino.convert_model(model, example_input=tensors)
            converted.reshape(
                {node.get_any_name(): openvino.PartialShape([-1, -1]) for node in converted.inputs}
            )
            openvino.save_model(converted, generation / MODEL_FILE, compress_to_fp16=False)
        except Exception as error:  # anything in the model's code or the converter may fail
            raise EncoderError(f"OpenVINO cannot convert this model: {error}") from error
