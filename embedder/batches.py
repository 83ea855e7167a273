"""Where the training loop gets its micro-batches, and how it finds its place in them again.

A source of batches is random access: `batch(epoch, index)` is a pure function, whatever was asked before.
Seeking costs nothing, so a run continues in the middle of an epoch without reading the skipped data, and
several processes can each take every n-th batch. Nothing here knows what an example is, and nothing here may
draw from a global random generator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from likewise.errors import DataError

E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)
B = TypeVar("B")


class Batches(Protocol[E_co]):
    """The micro-batches of any epoch, by number: lists of examples, not yet corrupted or collated."""

    @property
    def fingerprint(self) -> str:
        """Digest of the data and of all settings that change a batch: equal fingerprints, equal batches."""
        ...

    def length(self, epoch: int) -> int:
        """Number of batches in the epoch; at least 1."""
        ...

    def batch(self, epoch: int, index: int) -> Sequence[E_co]:
        """Examples of batch number `index` of the epoch: the same on every call."""
        ...


class FixedBatches(Generic[E]):
    """Examples that fit into memory, in the order given: evaluation sets and small trials.

    Args:
        examples: All of them.
        size: Examples in a batch; the last one may be smaller.
        fingerprint: Digest of the examples.

    Raises:
        DataError: No example.

    Example:
        >>> batches = FixedBatches(["a", "b", "c"], size=2)
        >>> [batches.batch(0, index) for index in range(batches.length(0))]
        [['a', 'b'], ['c']]
    """

    def __init__(self, examples: Sequence[E], *, size: int, fingerprint: str = "fixed") -> None:
        if not examples:
            raise DataError("expected at least one example, found none")
        self._examples = list(examples)
        self._size = size
        self.fingerprint = f"{fingerprint}/{len(examples)}/{size}"

    def length(self, epoch: int) -> int:
        """Number of batches, the same in every epoch."""
        return -(-len(self._examples) // self._size)

    def batch(self, epoch: int, index: int) -> list[E]:
        """Examples of a batch, the same in every epoch."""
        return self._examples[index * self._size : (index + 1) * self._size]


@dataclass(frozen=True)
class Stage(Generic[E]):
    """One part of a run with its own batches, such as short sequences first.

    Attributes:
        until: Progress of the run, in (0, 1], at which the stage ends.
        batches: The micro-batches of the stage.
    """

    until: float
    batches: Batches[E]


@dataclass(frozen=True)
class Position:
    """The next micro-batch to be read.

    Attributes:
        stage: Number of the stage.
        epoch: Epoch within the stage.
        index: Batch within the epoch.
        epochs: Passes over the data that earlier stages completed, as a fraction.
    """

    stage: int = 0
    epoch: int = 0
    index: int = 0
    epochs: float = 0.0


class Feed(Generic[E, B]):
    """The stream of prepared micro-batches of a run.

    A worker thread prepares the next batch while the model works on this one. Preparing is a pure function of
    the batch's number and the progress, so that can change neither order nor content.

    Args:
        source: The batches of the whole run, or stages with batches of their own, ordered by `until`.
        prepare: Turns examples into a batch of tensors: `prepare(examples, draw, progress)`.
        rank: Number of this process; it reads every `world`-th batch, beginning with this one.
        world: Number of processes.

    Raises:
        DataError: A stage has no batch, or the stages do not end at 1 in rising order.
    """

    def __init__(
        self,
        source: Batches[E] | Sequence[Stage[E]],
        prepare: Callable[[Sequence[E], int, float], B],
        *,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.stages = tuple(source) if isinstance(source, Sequence) else (Stage(1.0, source),)
        ends = [stage.until for stage in self.stages]
        if not ends or ends[-1] != 1.0 or ends != sorted(set(ends)) or ends[0] <= 0:
            raise DataError(f"expected stages that end at rising progress up to 1.0, found {ends}")
        for number, stage in enumerate(self.stages):
            if stage.batches.length(0) < 1:
                raise DataError(f"stage {number} of the training data holds no batch")
        self.position = Position()
        self._prepare = prepare
        self._rank = rank
        self._world = world
        self._worker: ThreadPoolExecutor | None = None
        self._ahead: tuple[tuple[Position, float], Future[B]] | None = None

    @property
    def fingerprint(self) -> str:
        """Digest of every stage's data and settings."""
        return ";".join(f"{stage.until:g}:{stage.batches.fingerprint}" for stage in self.stages)

    @property
    def epochs(self) -> float:
        """Passes over the data so far, as a fraction."""
        at = self.position
        return at.epochs + at.epoch + at.index / self.stages[at.stage].batches.length(at.epoch)

    def take(self, count: int, *, progress: float, until_epoch: float | None = None) -> list[Position]:
        """Move on by `count` micro-batches and return where this process's share of them stands.

        Args:
            count: Micro-batches of all processes together.
            progress: Progress of the run in [0, 1]: decides the stage.
            until_epoch: Stop early once that many passes over the data are complete.
        """
        self._enter_stage(progress)
        places: list[Position] = []
        for offset in range(count):
            if until_epoch is not None and self.epochs >= until_epoch - 1e-9:
                break
            if offset % self._world == self._rank:
                places.append(self.position)
            self._advance()
        return places

    def deliver(self, places: Sequence[Position], *, progress: float, next_progress: float) -> Iterator[B]:
        """The batches at these places.

        Args:
            places: What `take` returned.
            progress: Progress of the run that the batches are prepared for.
            next_progress: Progress of the next step; its first batch is prepared ahead.
        """
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="batches")
        for number, place in enumerate(places):
            wanted = (place, progress)
            if self._ahead is not None and self._ahead[0] == wanted:
                future = self._ahead[1]
            else:
                future = self._worker.submit(self._read, *wanted)
            if number + 1 < len(places):
                following = (places[number + 1], progress)
            else:
                # A guess: wrong at the end of an epoch or stage, where the batch is then prepared in time.
                at = self.position
                index = min(at.index + self._rank, self.stages[at.stage].batches.length(at.epoch) - 1)
                following = (Position(at.stage, at.epoch, index, at.epochs), next_progress)
            self._ahead = (following, self._worker.submit(self._read, *following))
            yield future.result()

    def close(self) -> None:
        """Stop the worker thread; the position stays."""
        if self._worker is not None:
            self._worker.shutdown(wait=True, cancel_futures=True)
        self._worker = self._ahead = None

    def _enter_stage(self, progress: float) -> None:
        stage = self.position.stage
        while stage + 1 < len(self.stages) and progress >= self.stages[stage].until:
            stage += 1
        if stage != self.position.stage:
            self.position = Position(stage=stage, epochs=self.epochs)

    def _advance(self) -> None:
        at = self.position
        if at.index + 1 < self.stages[at.stage].batches.length(at.epoch):
            self.position = Position(at.stage, at.epoch, at.index + 1, at.epochs)
        else:
            self.position = Position(at.stage, at.epoch + 1, 0, at.epochs)

    def _read(self, place: Position, progress: float) -> B:
        examples = self.stages[place.stage].batches.batch(place.epoch, place.index)
        return self._prepare(examples, place.epoch, progress)
