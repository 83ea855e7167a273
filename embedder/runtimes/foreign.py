"""Runs models that have parts only sentence-transformers knows, by running sentence-transformers.

Slow to start and slow to run; used only where there is no other way. Texts still come in as token ids, so
only models whose first module is a Transformer with a tokenizer can be run so.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.embedder.batching import Batch
from likewise.embedder.spec import ModelSpec
from likewise.errors import EncoderError


class ForeignRuntime:
    """A model inside a `SentenceTransformer`.

    Args:
        spec: The model.
        device: Where it computes.

    Raises:
        EncoderError: sentence-transformers cannot load the model, or it does not begin with a Transformer.
    """

    concurrency = 1
    batch_tokens = 8192

    def __init__(self, spec: ModelSpec, device: torch.device) -> None:
        from sentence_transformers import SentenceTransformer

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = SentenceTransformer(str(spec.directory), device=str(device), local_files_only=True)
        except Exception as error:  # every module of every package may be in there
            raise EncoderError(
                f"{spec.name} has parts that likewise does not know ({', '.join(spec.foreign)}), "
                f"and sentence-transformers cannot load it: {error}",
                remedy="choose a model of Transformer, Pooling, Dense and Normalize modules",
            ) from error
        if getattr(getattr(model, "tokenizer", None), "backend_tokenizer", None) is None:
            raise EncoderError(
                f"{spec.name} has parts that likewise cannot run ({', '.join(spec.foreign)})",
                remedy="choose a model of Transformer, Pooling, Dense and Normalize modules",
            )
        self._model = model.eval()
        self._device = device
        self._truncate = spec.truncate_dimension

    @property
    def name(self) -> str:
        """Such as "sentence-transformers cpu float32"."""
        return f"sentence-transformers {self._device} float32"

    def run(self, batch: Batch) -> NDArray[np.float32]:
        """Vectors of the batch's texts, float32 of shape (texts, dimension)."""
        with torch.inference_mode():
            features = {
                "input_ids": torch.from_numpy(batch.input_ids).to(self._device),
                "attention_mask": torch.from_numpy(batch.attention_mask).to(self._device),
            }
            output = self._model(features)["sentence_embedding"]
            vectors: NDArray[np.float32] = output[:, : self._truncate].float().cpu().numpy()
        return vectors
