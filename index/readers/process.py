"""The worker process as the parent sees it: start, ask, kill, say how it died."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from typing import IO

from likewise.errors import ReadError
from likewise.index.readers.base import ReaderLimits
from likewise.index.readers.protocol import Header, ProtocolError, read_frame, write_frame

# A cold disk and a busy machine may take this long to start Python; a broken installation fails at once.
_START_SECONDS = 120.0
_STDERR_LINES = 20
# A process that has closed its pipe is about to end.
_EXIT_SECONDS = 5.0


class WorkerDied(Exception):
    """The worker ended or was killed during a request; the message says how, for a person."""


class WorkerProcess:
    """One running worker. Not thread-safe: one request at a time.

    Args:
        limits: Sent to the worker once; `seconds` is also kept watch over from here.

    Raises:
        ReadError: The process does not start, which is a broken installation and no document's fault.
    """

    def __init__(self, limits: ReaderLimits) -> None:
        self._limits = limits
        self.timed_out = False
        self._stderr: deque[bytes] = deque(maxlen=_STDERR_LINES)
        self.served = 0
        try:
            self._process = _start()
        except OSError as error:
            raise _no_start(str(error)) from error
        self._drain = threading.Thread(target=self._drain_stderr, name="likewise-reader-stderr", daemon=True)
        self._drain.start()
        hello: Header = {"memory_bytes": limits.memory_bytes, "seconds": limits.seconds}
        try:
            self._exchange(hello, b"", seconds=_START_SECONDS)
        except WorkerDied as error:
            self.close()
            said = b"".join(self._stderr).decode("utf-8", "replace")
            raise _no_start(f"{error}\n{said}".strip()) from error

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def ask(self, header: Header, body: bytes) -> tuple[Header, bytes]:
        """Send a request and wait for its reply.

        Raises:
            WorkerDied: It crashed, hung or talked nonsense. It is gone then.
        """
        self.served += 1
        return self._exchange(header, body, seconds=self._limits.seconds)

    def kill(self) -> None:
        """End the process at once and wait until it is gone. May be called twice, and from another thread."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Kill the process and close its pipes."""
        self.kill()
        self._drain.join()
        for pipe in (self._stdin, self._stdout, self._process.stderr):
            if pipe is not None:
                with suppress(OSError):  # what was still to be flushed has no reader any more
                    pipe.close()

    def _exchange(self, header: Header, body: bytes, *, seconds: float) -> tuple[Header, bytes]:
        # Both the write (pipe full) and the read may block on a worker that hangs, on every platform only a
        # kill from another thread ends that.
        watchdog = threading.Timer(seconds, self._expire)
        watchdog.daemon = True
        watchdog.start()
        try:
            write_frame(self._stdin, header, body)
            reply = read_frame(self._stdout)
        except (OSError, ProtocolError) as error:
            raise WorkerDied(self._how_it_died(seconds, str(error))) from error
        except BaseException:
            self.kill()  # interrupted in the middle of a message: the pipes are out of step
            raise
        finally:
            watchdog.cancel()
        if reply is None:
            raise WorkerDied(self._how_it_died(seconds, "it closed the pipe"))
        return reply

    def _expire(self) -> None:
        self.timed_out = True
        self._process.kill()

    def _how_it_died(self, seconds: float, otherwise: str) -> str:
        """Wait until the process is gone, and say why it went."""
        try:
            code = self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"the reader broke: {otherwise}"
        if self.timed_out:
            return f"took longer than {seconds:g} s"
        if code == -getattr(signal, "SIGKILL", 9):
            return "the reader was killed from outside, perhaps for want of memory"
        if code < 0:
            return f"the reader crashed ({_signal_name(-code)})"
        # Windows reports a crash as a large status, known by its hexadecimal form.
        return f"the reader ended with status {code if code < 256 else hex(code)}"

    def _drain_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        while line := stderr.readline(4096):
            self._stderr.append(line)

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout


def _start() -> subprocess.Popen[bytes]:
    # -P: with `-m`, Python would put the working directory first in the module path, and a `json.py` in a
    # folder that is being indexed would run.
    command = [sys.executable, "-P", "-m", "likewise.index.readers.worker"]
    pipe = subprocess.PIPE
    if sys.platform == "win32":
        # A process group of its own does not receive Ctrl-C.
        flags = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, creationflags=flags)
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, process_group=0)


def _no_start(reason: str) -> ReadError:
    return ReadError(
        f"the process that reads documents did not start: {reason}",
        remedy=f"{sys.executable} -c 'import likewise.index.readers.worker'",
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
