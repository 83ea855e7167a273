"""Lay out a corpus in sequences, and sequences in batches of nearly equal size, using every token.

Documents longer than the model takes are cut; no sequence crosses a document boundary. A batch is a list of
sequences that fill a token budget; `examples.collate` puts them end to end without padding. All plans are
pure functions of (seed, epoch).
"""

from __future__ import annotations

import bisect
import hashlib
import threading
from collections import OrderedDict
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.corpus import TokenCorpus
from likewise.embedder.examples import Example
from likewise.embedder.sequences import Frame
from likewise.errors import DataError, UsageError

Order = Literal["bucketed", "packed"]
# Sequences that are sorted by length together: enough for full batches of equal lengths, few enough that a
# batch is still a random sample.
WINDOW = 8_192


def cut(bounds: NDArray[np.int64], room: int) -> NDArray[np.int64]:
    """Cut documents into pieces of at most `room` tokens that together are all tokens.

    All pieces of a document but the last are full. A last piece below an eighth of the room would teach
    little: it shares evenly with the one before.

    Args:
        bounds: int64 of shape (documents, 2): begin and end of each, none empty.
        room: Most tokens in a piece, at least 1.

    Returns:
        int64 of shape (pieces, 2): begin and end of each piece.

    Example:
        >>> cut(np.array([[0, 20], [20, 23]]), 9).tolist()
        [[0, 9], [9, 18], [18, 20], [20, 23]]
        >>> cut(np.array([[0, 17]]), 16).tolist()
        [[0, 8], [8, 17]]
    """
    if room < 1:
        raise UsageError(f"expected room for at least one token, found {room}")
    begins, ends = bounds[:, 0], bounds[:, 1]
    sizes = ends - begins
    pieces = -(-sizes // room)  # of each document
    document = np.repeat(np.arange(len(bounds)), pieces)
    first = np.repeat(np.cumsum(pieces) - pieces, pieces)  # number of its document's first piece
    starts = begins[document] + (np.arange(len(document)) - first) * room
    stops = np.minimum(starts + room, ends[document])
    last = np.flatnonzero(
        (stops == ends[document]) & (stops - starts < room / 8) & (starts > begins[document])
    )
    middle = (starts[last - 1] + stops[last]) // 2
    stops[last - 1] = starts[last] = middle
    return np.stack((starts, stops), axis=1)


def fill_in_order(lengths: NDArray[np.int64], capacity: int) -> list[NDArray[np.int64]]:
    """Put sequences into batches in the order given, as many as fit into each.

    Args:
        lengths: int64 of shape (sequences,), each at most `capacity`.
        capacity: Most tokens in a batch.

    Returns:
        Positions of the sequences of each batch.

    Example:
        >>> [batch.tolist() for batch in fill_in_order(np.array([3, 3, 3, 4]), 7)]
        [[0, 1], [2, 3]]
    """
    ends = np.cumsum(lengths)
    batches = []
    begin = 0
    while begin < len(lengths):
        used = ends[begin - 1] if begin else 0
        end = int(np.searchsorted(ends, used + capacity, side="right"))
        batches.append(np.arange(begin, max(end, begin + 1)))
        begin = max(end, begin + 1)
    return batches


def best_fit(lengths: NDArray[np.int64], capacity: int) -> list[NDArray[np.int64]]:
    """Put each sequence, longest first, into the fullest batch that still has room for it.

    Best-fit decreasing needs at most 11/9 of the fewest possible batches (Johnson 1973), and practically none
    more when many sequences are short.

    Args:
        lengths: int64 of shape (sequences,), each at most `capacity`.
        capacity: Most tokens in a batch.

    Returns:
        Positions of the sequences of each batch.

    Example:
        >>> [batch.tolist() for batch in best_fit(np.array([3, 5, 4, 2]), 7)]
        [[1, 3], [2, 0]]
    """
    batches: list[list[int]] = []
    open_batches: list[tuple[int, int]] = []  # (room left, number), sorted
    for at in np.argsort(-lengths, kind="stable").tolist():
        size = int(lengths[at])
        found = bisect.bisect_left(open_batches, (size, -1))
        if found < len(open_batches):
            left, number = open_batches.pop(found)
            batches[number].append(at)
        else:
            left, number = capacity, len(batches)
            batches.append([at])
        if left > size:
            bisect.insort(open_batches, (left - size, number))
    return [np.array(batch, dtype=np.int64) for batch in batches]


def plan_epoch(
    lengths: NDArray[np.int64], *, capacity: int, seed: int, epoch: int, order: Order, window: int = WINDOW
) -> list[NDArray[np.int64]]:
    """Batches of one epoch: shuffle all, group by length or by fit within a window, shuffle the batches.

    Args:
        lengths: int64 of shape (sequences,), each at most `capacity`.
        capacity: Most tokens in a batch.
        seed: Of the run.
        epoch: Each has another order.
        order: "bucketed" puts sequences of similar length into a batch, which attention handles fastest;
            "packed" mixes lengths and fills batches best.
        window: Sequences that are grouped together.

    Returns:
        Positions of the sequences of each batch; each sequence is in exactly one.
    """
    if order not in ("bucketed", "packed"):
        raise UsageError(f"expected the order bucketed or packed, found {order!r}")
    rng = np.random.default_rng((seed, epoch))
    shuffled = rng.permutation(len(lengths))
    batches: list[NDArray[np.int64]] = []
    rest = shuffled[:0]
    for begin in range(0, len(shuffled), window):
        members = np.concatenate((rest, shuffled[begin : begin + window]))
        if order == "bucketed":
            members = members[np.argsort(lengths[members], kind="stable")]
            groups = fill_in_order(lengths[members], capacity)
        else:
            groups = best_fit(lengths[members], capacity)
        found = [members[group] for group in groups]
        # The emptiest batch of a window is filled up in the next one.
        emptiest = min(range(len(found)), key=lambda number: int(lengths[found[number]].sum()))
        rest = found.pop(emptiest)
        batches += found
    if len(rest):
        batches.append(rest)
    return [batches[number] for number in rng.permutation(len(batches))]


class PlannedBatches:
    """Random access to batches whose plan for an epoch is made when the epoch is first asked for.

    Args:
        lengths: int64 of shape (sequences,): tokens of each, special ones included.
        capacity: Most tokens in a batch.
        seed: Of the order.
        order: See `plan_epoch`.
        shuffle: False keeps the order of epoch 0 in all epochs, for evaluation.

    Raises:
        DataError: No sequence.
        UsageError: A sequence is longer than a batch.
    """

    def __init__(
        self,
        lengths: NDArray[np.int64],
        *,
        capacity: int,
        seed: int = 0,
        order: Order = "bucketed",
        shuffle: bool = True,
    ) -> None:
        if not len(lengths):
            raise DataError("expected at least one sequence to train on, found none")
        if lengths.max() > capacity:
            raise UsageError(
                f"expected batches with room for the longest sequence of {lengths.max()} tokens, "
                f"found a batch size of {capacity} tokens"
            )
        self._lengths, self._capacity, self._seed, self._order = lengths, capacity, seed, order
        self._shuffle = shuffle
        self._plans: OrderedDict[int, list[NDArray[np.int64]]] = OrderedDict()
        self._lock = threading.Lock()  # the loop and its worker thread both ask

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        """Positions of the sequences of each batch of the epoch."""
        epoch = epoch if self._shuffle else 0
        with self._lock:
            if epoch not in self._plans:
                self._plans[epoch] = plan_epoch(
                    self._lengths,
                    capacity=self._capacity,
                    seed=self._seed,
                    epoch=epoch,
                    order=self._order,
                )
                while len(self._plans) > 2:  # the loop may look one epoch ahead
                    self._plans.popitem(last=False)
            return self._plans[epoch]


class CorpusBatches:
    """Batches of framed sequences of one part of a corpus.

    Args:
        corpus: The token ids.
        frame: Special tokens around each sequence.
        length: Longest sequence, special tokens included.
        tokens_per_batch: Most tokens in a micro-batch, special tokens included.
        held_out: Which part.
        seed: Of the order.
        order: See `plan_epoch`.

    Raises:
        DataError: The part is empty.
        UsageError: The length has no room for text, or a batch none for a sequence.
    """

    def __init__(
        self,
        corpus: TokenCorpus,
        frame: Frame,
        *,
        length: int,
        tokens_per_batch: int,
        held_out: bool = False,
        seed: int = 0,
        order: Order = "bucketed",
    ) -> None:
        if length <= frame.size:
            raise UsageError(f"expected sequences of more than {frame.size} tokens, found {length}")
        self._corpus, self._frame = corpus, frame
        self.pieces = cut(corpus.bounds(held_out=held_out), length - frame.size)
        self._planned = PlannedBatches(
            self.pieces[:, 1] - self.pieces[:, 0] + frame.size,
            capacity=tokens_per_batch,
            seed=seed,
            order=order,
            shuffle=not held_out,
        )
        settings = repr((corpus.fingerprint, frame, length, tokens_per_batch, held_out, seed, order))
        self.fingerprint = hashlib.blake2b(settings.encode(), digest_size=8).hexdigest()

    @property
    def tokens(self) -> int:
        """Tokens in an epoch, special ones included."""
        return int((self.pieces[:, 1] - self.pieces[:, 0]).sum()) + self._frame.size * len(self.pieces)

    def length(self, epoch: int) -> int:
        """Number of batches in the epoch."""
        return len(self._planned.plan(epoch))

    def batch(self, epoch: int, index: int) -> list[Example]:
        """Sequences of one batch."""
        return [
            # Where a piece begins in the corpus is a number that no other piece of this cut has.
            self._frame.example(self._corpus.tokens[begin:end], key=int(begin))
            for begin, end in self.pieces[self._planned.plan(epoch)[index]].tolist()
        ]
