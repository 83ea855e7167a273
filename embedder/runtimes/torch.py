"""Runs a model with torch: on GPUs, and wherever OpenVINO does not give the same vectors.

Also the reference that other runtimes are compared with, and the module that they are converted from.
Imports torch and transformers: a search with a prepared encoder must never get here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from likewise.embedder.batching import Batch
from likewise.embedder.fingerprint import weight_files
from likewise.embedder.pooling import pool
from likewise.embedder.spec import Head, ModelSpec, read_config
from likewise.errors import EncoderError

Attention = Literal["fused", "written out"]


class TorchRuntime:
    """A model in torch, float32.

    Args:
        model: As `load_model` gives it.
        device: Where it computes.
    """

    concurrency = 1  # torch uses all cores for one batch
    batch_tokens = 8192

    def __init__(self, model: TextModel, device: torch.device) -> None:
        self.model = model.to(device)
        self._device = device

    @property
    def name(self) -> str:
        """Such as "torch cpu float32"."""
        return f"torch {self._device} float32"

    def run(self, batch: Batch) -> NDArray[np.float32]:
        """Vectors of the batch's texts, float32 of shape (texts, dimension), not normalised."""
        with torch.inference_mode():
            inputs = [torch.from_numpy(array).to(self._device) for array in batch]
            vectors: NDArray[np.float32] = self.model(*inputs).float().cpu().numpy()
        return vectors


class TextModel(nn.Module):
    """Transformer, pooling and the modules behind it, as one module.

    Args:
        transformer: Gives the last hidden state as the first item of its output.
        pooling: Modes whose results are concatenated.
        heads: Applied to the pooled vectors, in order.
        truncate_dimension: Vectors are cut to this length, or None.
    """

    def __init__(
        self,
        transformer: nn.Module,
        pooling: tuple[str, ...],
        heads: list[nn.Module],
        truncate_dimension: int | None,
    ) -> None:
        super().__init__()
        self.transformer = transformer
        self.heads = nn.ModuleList(heads)
        self._pooling = pooling
        self._dimension = truncate_dimension

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, pooling_mask: Tensor | None = None
    ) -> Tensor:
        """Vectors of the texts, shape (texts, dimension), from int64 arrays (texts, tokens)."""
        outputs = self.transformer(input_ids=input_ids, attention_mask=attention_mask, return_dict=False)
        counted = attention_mask if pooling_mask is None else pooling_mask
        vectors = pool(outputs[0].float(), counted, self._pooling)  # (texts, width * modes)
        for head in self.heads:
            vectors = head(vectors)
        return vectors if self._dimension is None else vectors[:, : self._dimension]


class Dense(nn.Module):
    """The Dense module of sentence-transformers: a linear layer, an activation, perhaps a residual."""

    def __init__(self, linear: nn.Linear, activation: nn.Module, residual: nn.Module | None) -> None:
        super().__init__()
        self.linear = linear
        self.activation = activation
        self.residual = residual

    def forward(self, vectors: Tensor) -> Tensor:
        """Shape (texts, in_features) to (texts, out_features)."""
        output: Tensor = self.activation(self.linear(vectors))
        return output if self.residual is None else output + self.residual(vectors)


class Normalize(nn.Module):
    """Scales vectors to unit length."""

    def forward(self, vectors: Tensor) -> Tensor:
        """Shape unchanged."""
        return nn.functional.normalize(vectors, dim=-1)


def load_model(spec: ModelSpec, *, attention: Attention = "fused") -> TextModel:
    """Load a model's weights, in evaluation mode, float32, on the CPU.

    Args:
        spec: The model.
        attention: One operation of torch, or the matrix products and the softmax that it is made of. The
            same result, but not every converter takes the former.

    Raises:
        EncoderError: The weights are missing, damaged, do not fit the model, or need code that comes with
            them.
    """
    from transformers import AutoModel

    config = read_config(spec.transformer / "config.json", required=True)
    try:
        with quiet():
            transformer, loading = AutoModel.from_pretrained(
                str(spec.transformer),
                local_files_only=True,
                dtype=torch.float32,
                # None: what transformers chooses, since a few architectures have nothing but the latter.
                attn_implementation=None if attention == "fused" else "eager",
                output_loading_info=True,
            )
    except Exception as error:  # each architecture and file format has exceptions of its own
        if "auto_map" in config:
            raise EncoderError(
                f"{spec.name} needs Python code that comes with its weights, and likewise runs no such code",
                remedy="choose a model whose architecture transformers knows",
            ) from error
        raise EncoderError(
            f"cannot load the weights in {spec.transformer}: {error}",
            remedy="save or download the model again",
        ) from error
    # A pooler that was never trained is made up at loading; its output is not used.
    missing = [key for key in loading["missing_keys"] if "pooler" not in key]
    if missing:
        raise EncoderError(
            f"the weights in {spec.transformer} lack {len(missing)} of the model's tensors: {missing[0]}",
            remedy="save or download the model again: weights and config.json do not belong together",
        )
    heads = [_load_head(head) for head in spec.heads]
    return TextModel(transformer, spec.pooling, heads, spec.truncate_dimension).eval()


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings, messages and progress bars of transformers, none of which is about the user."""
    from transformers.utils import logging

    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _load_head(head: Head) -> nn.Module:
    if head.kind == "normalize":
        return Normalize()
    config = read_config(head.directory / "config.json", required=True)
    [path] = weight_files(head.directory)
    try:
        state = _read_state(path)
        inputs, outputs = int(config["in_features"]), int(config["out_features"])
        linear = nn.Linear(inputs, outputs, bias=bool(config.get("bias", True)))
        linear.load_state_dict(
            {k.removeprefix("linear."): v for k, v in state.items() if k.startswith("linear.")}
        )
        residual: nn.Module | None = None
        if config.get("use_residual"):
            residual = nn.Identity()
            if inputs != outputs:
                residual = nn.Linear(inputs, outputs, bias=False)
                residual.load_state_dict({"weight": state["residual.weight"]})
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise EncoderError(
            f"cannot load {path}: {error}", remedy="save or download the model again"
        ) from error
    return Dense(
        linear.float(), _activation(str(config.get("activation_function", "torch.nn.Tanh"))), residual
    )


def _read_state(path: Path) -> dict[str, Tensor]:
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return dict(load_file(path))
        except SafetensorError as error:
            raise ValueError(str(error)) from error
    # `weights_only`: a pickle could otherwise run any code.
    return dict(torch.load(path, map_location="cpu", weights_only=True))


def _activation(name: str) -> nn.Module:
    """An activation by its dotted name, from torch alone: the name comes from a file."""
    kind = getattr(nn, name.rsplit(".", 1)[-1], None) if name.startswith("torch.nn.") else None
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        raise EncoderError(f"expected an activation function of torch.nn, found {name}")
    return kind()
