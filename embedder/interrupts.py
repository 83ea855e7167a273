"""Turn Ctrl-C into a question that a loop can ask between two steps."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupt:
    """While active, the first Ctrl-C (or SIGTERM) only sets a flag; the second one stops at once.

    Outside the main thread, where Python delivers no signals, it stays unset and changes nothing.

    Example:
        >>> with Interrupt() as interrupt:
        ...     signal.raise_signal(signal.SIGINT)
        ...     bool(interrupt)
        True
    """

    def __init__(self) -> None:
        self._set = False
        self._before: dict[int, Any] = {}

    def __bool__(self) -> bool:
        return self._set

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._set:
            raise KeyboardInterrupt
        self._set = True
