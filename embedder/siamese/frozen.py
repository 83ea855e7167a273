"""What frozen layers make of each distinct text, computed once and kept in a file that is mapped into memory.

Frozen layers are the same in every step and drop nothing, so their result for a text is the same too. Epochs
then cost the layers above alone. The file has a limit: texts that do not fit go through the frozen layers
each time, which changes the time that is saved and nothing else. Frozen layers are computed in float32 here,
whatever the precision of the layers above.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.embedder.bert import Bert
from likewise.embedder.siamese.model import SentenceModel
from likewise.embedder.siamese.token_table import TokenTable
from likewise.errors import TrainingError, UsageError

Floats = NDArray[np.float32]
# Tokens that go through the frozen layers together when the file is filled.
_BLOCK_TOKENS = 8192


class FrozenActivations:
    """The activations at the upper end of the frozen layers, by number of the text.

    Made by `kept_activations`.

    Args:
        model: With frozen layers.
        table: Tokens of the texts.
        store: float32 of shape (tokens, width): those of the first texts, in their order.
        kept: How many texts are in the store.
    """

    def __init__(self, model: SentenceModel, table: TokenTable, store: Floats, kept: int) -> None:
        self._model, self._table, self._store, self.kept = model, table, store, kept
        self._starts = np.concatenate([[0], np.cumsum(table.lengths())])

    def of(self, numbers: Sequence[int]) -> list[Floats]:
        """Activations of texts, float32 of shape (tokens, width) each."""
        missing = [number for number in numbers if number >= self.kept]
        live: dict[int, Floats] = {}
        if missing:
            found = _computed(self._model, self._table, missing)
            ends = np.cumsum([len(self._table.ids(number)) for number in missing])
            live = dict(zip(missing, np.split(found, ends[:-1]), strict=True))
        return [
            live[number] if number in live else self._store[self._starts[number] : self._starts[number + 1]]
            for number in numbers
        ]

    def forget(self) -> None:
        """Let go of the file, which Windows would not delete while it is mapped."""
        self._store, self.kept = self._store[:0].copy(), 0


@contextmanager
def kept_activations(
    model: SentenceModel, table: TokenTable, folder: Path, *, gigabytes: float
) -> Iterator[FrozenActivations]:
    """Compute the activations of the texts and keep them for as long as the context lasts.

    Args:
        model: With frozen layers, on the device where it is trained.
        table: The texts.
        folder: Where the file goes.
        gigabytes: Its largest size, in units of 10**9 bytes.

    Raises:
        UsageError: The model has no frozen layers, or is none of the BERT family.
        TrainingError: The file cannot be written.
    """
    if not model.frozen_layers:
        raise UsageError("activations of frozen layers are to be kept, but no layer is frozen")
    if not isinstance(model.body, Bert):
        raise UsageError("activations of frozen layers can be kept for models of the BERT family only")
    width = model.body.config.hidden_size
    ends = np.cumsum(table.lengths())
    kept = int(np.searchsorted(ends, int(gigabytes * 1e9) // (4 * width), side="right"))
    with ExitStack() as stack:
        store: Floats = np.empty((0, width), dtype=np.float32)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            home = Path(
                stack.enter_context(
                    tempfile.TemporaryDirectory(dir=folder, prefix="frozen-", ignore_cleanup_errors=True)
                )
            )
            if kept:
                _fill(home / "activations.f32", model, table, kept)
                store = np.memmap(
                    home / "activations.f32", np.float32, "r", shape=(int(ends[kept - 1]), width)
                )
        except OSError as error:
            raise TrainingError(
                f"activations of frozen layers could not be kept in {folder}: {error}",
                remedy="free some disk space, or keep fewer of them",
            ) from error
        activations = FrozenActivations(model, table, store, kept)
        del store
        stack.callback(activations.forget)
        yield activations


def _fill(path: Path, model: SentenceModel, table: TokenTable, kept: int) -> None:
    """Write the activations of the first texts.

    Always in the same blocks, so that a run that goes on finds the very same values. Written rather than
    mapped: on a full disk, writing raises an error where a mapping kills the process.
    """
    starts = np.concatenate([[0], np.cumsum(table.lengths())])
    with path.open("wb") as file:
        at = 0
        while at < kept:
            end = int(np.searchsorted(starts, starts[at] + _BLOCK_TOKENS, side="right")) - 1
            end = min(kept, max(end, at + 1))
            file.write(_computed(model, table, range(at, end)).tobytes())
            at = end


def _computed(model: SentenceModel, table: TokenTable, numbers: Sequence[int]) -> Floats:
    """Activations of texts one after another, (all their tokens, width)."""
    body = model.body
    assert isinstance(body, Bert)
    rows = [table.ids(number) for number in numbers]
    ids = torch.from_numpy(np.concatenate(rows).astype(np.int64))[None].to(model.device)
    with torch.no_grad(), torch.autocast(model.device.type, enabled=False):
        found = body.lower(ids, model.frozen_layers, lengths=[len(row) for row in rows])
    activations: Floats = found[0].float().cpu().numpy()
    return activations
