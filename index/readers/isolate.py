"""Read files in an isolated worker process: one entry point for whoever indexes.

`ReaderPool` keeps one worker, starts it with the first file, kills it when a document crashes it, hangs or
outgrows its limits, and goes on with a new one; the document ends as failed. One worker, because PDFium is
not thread-safe and because reading is much cheaper than embedding. Never forks: FAISS and torch may have
threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

from likewise.index.readers.base import FileContent, ReaderLimits, ReadResult, Vanished
from likewise.index.readers.fileaccess import load
from likewise.index.readers.process import WorkerDied, WorkerProcess
from likewise.index.readers.protocol import ProtocolError, outcome_from
from likewise.index.readers.registry import no_reader
from likewise.index.records import DocumentState, Extraction, Skip

__all__ = ["FileContent", "ReadResult", "ReaderLimits", "ReaderPool", "Vanished"]

# How far `read_many` runs ahead of its consumer: enough to bridge one slow file, little enough to keep
# memory flat.
_AHEAD_FILES = 64
_AHEAD_CHARACTERS = 8 << 20


class ReaderPool:
    """Reads documents in a process of their own.

    Use it as a context manager: leaving it kills the worker. It may be used again afterwards, with a new
    worker. `read` may be called while `read_many` runs; everything else is for one thread at a time.

    Args:
        limits: What one document may cost.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, ReaderPool() as pool:
        ...     note = Path(folder, "note.md")
        ...     _ = note.write_text("# Keys", encoding="utf-8")
        ...     content, outcome = pool.read(note, "note.md")
        >>> content.size, outcome.title
        (6, 'Keys')
    """

    def __init__(self, limits: ReaderLimits | None = None) -> None:
        self.limits = limits or ReaderLimits()
        self._worker: WorkerProcess | None = None
        self._ahead: _Ahead | None = None
        self._feeder: threading.Thread | None = None
        self._asking = threading.Lock()  # the worker answers one request at a time

    def __enter__(self) -> ReaderPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def worker_pid(self) -> int | None:
        """Process id of the worker, None while none runs."""
        return self._worker.pid if self._worker else None

    def close(self) -> None:
        """Kill the worker, if one runs, in the middle of a document or not."""
        self._stop_feeding()
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def read(self, path: Path, key: str) -> tuple[FileContent | None, Extraction | Skip]:
        """Read one file.

        Args:
            path: Where it is.
            key: Its name in the index, of which the last component tells the format where the content does
                not.

        Returns:
            What identifies the bytes that were read (None where the file is gone or no file; its hash is ""
            where it was not opened), and the text or why there is none. A file that is gone gives `Vanished`.

        Raises:
            ReadError: The worker process does not start.
        """
        content, data = load(path, self.limits)
        if isinstance(data, Skip):
            return content, _stamped(data)
        name = key.rpartition("/")[2].lower()
        suffix = name[dot:] if (dot := name.rfind(".")) > 0 else ""
        with self._asking:
            return content, self._extract(data, name=name, suffix=suffix)

    def read_many(self, items: Iterable[tuple[Path, str]]) -> Iterator[ReadResult]:
        """Read files in order, running ahead of the consumer in a background thread.

        Args:
            items: (path, key) of each file, consumed at once.

        Raises:
            ReadError: The worker process does not start.
        """
        if self._ahead is not None:
            raise RuntimeError("read_many is already running on this pool")
        ahead = self._ahead = _Ahead()
        feeder = self._feeder = threading.Thread(
            target=self._feed, args=(list(items), ahead), name="likewise-reader", daemon=True
        )
        feeder.start()
        try:
            while (result := ahead.take()) is not None:
                yield result
        finally:
            if self._ahead is ahead:
                self._stop_feeding()

    def _stop_feeding(self) -> None:
        if self._ahead is None or self._feeder is None:
            return
        self._ahead.stop()
        while self._feeder.is_alive():
            # It may be deep in a document that nobody waits for any more.
            if (worker := self._worker) is not None and not self._ahead.exhausted:
                worker.kill()
            self._feeder.join(0.05)
        self._ahead = self._feeder = None

    def _feed(self, items: list[tuple[Path, str]], ahead: _Ahead) -> None:
        try:
            for path, key in items:
                if ahead.stopped:
                    return
                ahead.put(ReadResult(key, *self.read(path, key)))
            ahead.end(None)
        except BaseException as error:
            ahead.end(error)  # raised again where the results are taken

    def _extract(self, data: bytes, *, name: str, suffix: str) -> Extraction | Skip:
        """The outcome for some bytes; a used worker that fails gets a second try in a fresh one."""
        while True:
            if self._worker is None:
                self._worker = WorkerProcess(self.limits)
            worker = self._worker
            fresh = worker.served == 0
            try:
                header, body = worker.ask(
                    {"name": name, "suffix": suffix, "max_characters": self.limits.max_characters}, data
                )
                outcome = outcome_from(header, body)
                if not header.get("exhausted"):
                    return outcome
            except WorkerDied as error:
                outcome = Skip(DocumentState.FAILED, str(error), no_reader())
                fresh = fresh or worker.timed_out
            except ProtocolError as error:
                outcome = Skip(DocumentState.FAILED, f"the reader broke: {error}", no_reader())
            worker.close()
            self._worker = None
            if fresh or (self._ahead is not None and self._ahead.stopped):
                return outcome


def _stamped(skip: Skip) -> Skip:
    """A skip that was decided before any reader was tried, with what stands for the reader then."""
    return type(skip)(skip.state, skip.reason, no_reader())


class _Ahead:
    """A queue between one producer and one consumer, bounded by files and by characters."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._results: deque[ReadResult] = deque()
        self._characters = 0
        self._ended = False
        self._error: BaseException | None = None
        self.stopped = False
        self.exhausted = False  # the producer is through, and only has to return

    def put(self, result: ReadResult) -> None:
        """Add a result; waits while the consumer is too far behind."""
        with self._changed:
            while self._full() and not self.stopped:
                self._changed.wait()
            self._results.append(result)
            self._characters += _weight(result)
            self._changed.notify_all()

    def take(self) -> ReadResult | None:
        """The next result, None at the end; raises what ended the producer."""
        with self._changed:
            while not self._results and not self._ended:
                # With a time-out, because Windows delivers Ctrl-C only between waits.
                self._changed.wait(0.5)
            if not self._results:
                if self._error is not None:
                    raise self._error
                return None
            result = self._results.popleft()
            self._characters -= _weight(result)
            self._changed.notify_all()
            return result

    def end(self, error: BaseException | None) -> None:
        """Nothing more will come."""
        with self._changed:
            self._ended, self._error, self.exhausted = True, error, True
            self._changed.notify_all()

    def stop(self) -> None:
        """Nothing more will be taken."""
        with self._changed:
            self.stopped = True
            self._ended = True
            self._changed.notify_all()

    def _full(self) -> bool:
        return len(self._results) >= _AHEAD_FILES or self._characters >= _AHEAD_CHARACTERS


def _weight(result: ReadResult) -> int:
    return len(result.outcome.text) if isinstance(result.outcome, Extraction) else 0
