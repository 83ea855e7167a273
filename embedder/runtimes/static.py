"""Runs static models: one vector for each token, a text is their mean. NumPy alone, no network of layers.

Such a model is a StaticEmbedding of sentence-transformers, or one of model2vec, which have the same files.
Must not import torch or transformers: a static encoder never needs them, not even the first time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.batching import Batch
from likewise.embedder.fingerprint import weight_files
from likewise.embedder.spec import ModelSpec
from likewise.embedder.static.files import TOKENIZER_FILE, truncation_side
from likewise.embedder.tokenizer import TokenizerSettings, write_tokenizer
from likewise.errors import EncoderError


class StaticRuntime:
    """A table of token vectors.

    Args:
        table: float32 of shape (vocabulary, dimension).
        truncate_dimension: Vectors are cut to this length, or None.
    """

    concurrency = 1  # nearly all the time goes into tokenizing, which uses all cores by itself
    batch_tokens = 1 << 18  # only ids are padded

    def __init__(self, table: NDArray[np.float32], truncate_dimension: int | None = None) -> None:
        self._table = table if truncate_dimension is None else table[:, :truncate_dimension]

    @property
    def name(self) -> str:
        """Always "static cpu float32"."""
        return "static cpu float32"

    def run(self, batch: Batch) -> NDArray[np.float32]:
        """Vectors of the batch's texts, float32 of shape (texts, dimension), not normalised."""
        vectors = np.empty((len(batch.input_ids), self._table.shape[1]), dtype=np.float32)
        lengths = batch.pooling_mask.sum(axis=1).tolist()
        ends = batch.attention_mask.sum(axis=1).tolist()
        for row, (ids, length, end) in enumerate(zip(batch.input_ids, lengths, ends, strict=True)):
            # Tokens that do not count, those of a prompt, are the leading ones.
            vectors[row] = self._table[ids[end - length : end]].mean(axis=0)
        return vectors


def load_table(spec: ModelSpec) -> NDArray[np.float32]:
    """The token vectors of a static model, float32 of shape (vocabulary, dimension).

    Raises:
        EncoderError: They are missing, damaged, or in a format that only torch reads.
    """
    [path] = weight_files(spec.transformer)
    try:
        arrays = _read_arrays(path)
        if "embedding.weight" in arrays:
            return arrays["embedding.weight"]
        # What model2vec writes: perhaps fewer vectors than tokens, and a factor for each token.
        table = arrays["embeddings"]
        if "mapping" in arrays:
            table = table[arrays["mapping"].astype(np.int64)]
        if "weights" in arrays:
            table = table * arrays["weights"][:, None]
        return np.ascontiguousarray(table, dtype=np.float32)
    except (OSError, KeyError, ValueError, IndexError) as error:
        raise EncoderError(
            f"cannot load the token vectors in {path}: {error}", remedy="save or download the model again"
        ) from error


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if path.suffix != ".safetensors":
        raise ValueError("expected safetensors")
    try:
        arrays = load_file(path)
    except (SafetensorError, KeyError) as error:  # KeyError: bfloat16, which NumPy does not have
        raise ValueError(str(error)) from error
    return {
        name: value.astype(np.float32) if value.dtype.kind == "f" else value for name, value in arrays.items()
    }


def prepare_static_tokenizer(spec: ModelSpec, directory: Path) -> None:
    """Store a static model's tokenizer in `directory`, as `prepare_tokenizer` does for other models.

    Special tokens are left out, as a mean over tokens has no use for them. A text without a token is
    represented by the first one that is not part of the text, and so by a vector of zeros in models that were
    made here.

    Raises:
        EncoderError: The tokenizer is missing or damaged.
    """
    from tokenizers import Tokenizer

    path = spec.transformer / TOKENIZER_FILE
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for any fault of the file
        raise EncoderError(
            f"cannot load the tokenizer in {spec.transformer}: {error}",
            remedy="save or download the model again, tokenizer included",
        ) from error
    padding = tokenizer.padding
    keep_end = truncation_side(spec.transformer) == "left"
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.post_processor = None
    pad_id = int(padding["pad_id"]) if padding else tokenizer.token_to_id("[PAD]") or 0
    write_tokenizer(tokenizer, TokenizerSettings(pad_id, pad_id, keep_end), directory)
