"""A cross-encoder as a reranker, loaded when it is first needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from likewise.embedder.cross_encoder import CrossEncoder


class CrossEncoderReranker:
    """Reranks with any sentence-transformers or Hugging Face cross-encoder of one label.

    Args:
        name_or_path: A folder or a hub id.
        device: A torch device such as `"cuda"`; None for the CPU.
    """

    def __init__(self, name_or_path: str | os.PathLike[str], *, device: str | None = None) -> None:
        self.name = os.fspath(name_or_path)
        self._device = device

    def load(self) -> CrossEncoder:
        """The model; the first call loads it, and converts it where no prepared form is kept.

        Raises:
            EncoderNotFound: There is no such model.
            EncoderError: It is no cross-encoder with one label, or cannot be run.
        """
        return self._model

    def scores(self, query: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """See `Reranker.scores`."""
        return self._model.scores(query, passages)

    @cached_property
    def _model(self) -> CrossEncoder:
        from likewise.embedder.cross_encoder import CrossEncoder

        return CrossEncoder.load(self.name, device=self._device)
