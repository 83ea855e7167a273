"""The process that reads documents: `python -m likewise.index.readers.worker`, started by `isolate`.

Hostile documents make parsers crash, hang and grow; here they only take this process with them. It speaks
`protocol` on its original stdin and stdout, which nothing else can write to, and ends when the parent does.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from typing import IO

from likewise.index.readers.base import Source
from likewise.index.readers.protocol import Header, outcome_frame, read_frame, write_frame
from likewise.index.readers.registry import no_reader, read
from likewise.index.records import DocumentState, Skip

# The parent kills a slow worker. Should the parent be gone, the worker ends itself this much later.
_ORPHAN_GRACE_SECONDS = 5.0


def main() -> int:
    """Serve requests until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    requests, replies = _own_pipes()
    first = read_frame(requests)
    if first is None:
        return 0
    limits, _ = first
    memory, seconds = int(_number(limits, "memory_bytes")), _number(limits, "seconds")
    _limit_resources(memory)
    write_frame(replies, {"ready": os.getpid()})
    while (request := read_frame(requests)) is not None:
        header, data = request
        # A C thread that needs no interpreter: ends even a parser that holds the interpreter lock for ever.
        faulthandler.dump_traceback_later(seconds + _ORPHAN_GRACE_SECONDS, exit=True)
        reply, body = _serve(header, data, memory)
        del request, data
        write_frame(replies, reply, body)
        faulthandler.cancel_dump_traceback_later()
    return 0


def _serve(header: Header, data: bytes, memory: int) -> tuple[Header, bytes]:
    source = Source(
        data=data,
        suffix=str(header["suffix"]),
        name=str(header["name"]),
        max_characters=int(_number(header, "max_characters")),
    )
    try:
        return outcome_frame(read(source))
    except MemoryError:
        # Said in the header, because a worker that has run out once is not to be used again.
        reply, body = _failed(f"needs more than {memory >> 20:,} MiB of memory")
        return {**reply, "exhausted": True}, body
    except RecursionError:
        return _failed("is nested too deeply")
    except Exception as error:  # a parser's bug on this document must not end the run; the reason names it
        return _failed(f"the reader failed: {type(error).__name__}: {error}"[:500])


def _failed(reason: str) -> tuple[Header, bytes]:
    return outcome_frame(Skip(DocumentState.FAILED, reason, no_reader()))


def _own_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Move the pipes to private descriptors, so that a library that prints cannot break the protocol."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    return requests, replies


def _limit_resources(memory: int) -> None:
    """Cap the address space, and leave no core files. Windows has no such call, macOS ignores the cap."""
    if sys.platform == "win32":
        return
    import resource

    for limit, value in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
        try:
            _, hard = resource.getrlimit(limit)
            capped = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(limit, (capped, hard))
        except (ValueError, OSError):
            continue  # the platform knows the limit but does not let us set it


def _number(header: Header, name: str) -> float:
    value = header[name]
    if not isinstance(value, int | float):
        raise TypeError(f"{name} is not a number: {value!r}")
    return value


if __name__ == "__main__":
    sys.exit(main())
