"""Messages between the parent and the worker process: length-prefixed JSON and raw bytes over pipes.

A frame is two big-endian 32-bit lengths, a JSON header and a body. Nothing is unpickled: a worker that a
hostile document has taken over can answer nonsense, but `outcome_from` checks it, so nonsense becomes an
error.
"""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from typing import IO, TypeAlias

from likewise.index.records import DocumentState, Extraction, Heading, Json, Link, Skip, Span

Header: TypeAlias = "dict[str, Json]"

_LENGTHS = struct.Struct(">II")
# No honest answer is near this: the parent must not allocate whatever the worker names.
MAX_FRAME = 1 << 30


class ProtocolError(Exception):
    """The other side sent something that is not a message."""


def write_frame(stream: IO[bytes], header: Header, body: bytes = b"") -> None:
    """Send one message."""
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if len(head) > MAX_FRAME or len(body) > MAX_FRAME:
        raise ProtocolError(
            f"a message holds at most {MAX_FRAME:,} bytes, this one {len(head) + len(body):,}"
        )
    # One write per message where it is small: half the system calls.
    prefix = _LENGTHS.pack(len(head), len(body)) + head
    if len(body) < 1 << 16:
        stream.write(prefix + body)
    else:
        stream.write(prefix)
        stream.write(body)
    stream.flush()


def read_frame(stream: IO[bytes]) -> tuple[Header, bytes] | None:
    """Receive one message, or None when the other side has closed the pipe.

    Raises:
        ProtocolError: The stream ends inside a message, or holds no message.
    """
    prefix = stream.read(_LENGTHS.size)
    if not prefix:
        return None
    if len(prefix) < _LENGTHS.size:
        raise ProtocolError("the stream ended inside a message")
    head_length, body_length = _LENGTHS.unpack(prefix)
    if max(head_length, body_length) > MAX_FRAME:
        raise ProtocolError("the message is longer than any honest one")
    head, body = stream.read(head_length), stream.read(body_length)
    if len(head) < head_length or len(body) < body_length:
        raise ProtocolError("the stream ended inside a message")
    try:
        header = json.loads(head.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the header is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise ProtocolError("the header is not an object")
    return header, body


def outcome_frame(outcome: Extraction | Skip) -> tuple[Header, bytes]:
    """A reader's outcome as a message."""
    if isinstance(outcome, Skip):
        return {"state": str(outcome.state), "reason": outcome.reason, "reader": outcome.reader}, b""
    header: Header = {
        "state": str(DocumentState.OK),
        "reader": outcome.reader,
        "title": outcome.title,
        "language": outcome.language,
        "headings": [[h.span.start, h.span.end, h.level, h.title] for h in outcome.headings],
        "page_starts": list(outcome.page_starts),
        "breaks": list(outcome.breaks),
        "verbatim": [[span.start, span.end] for span in outcome.verbatim],
        "links": [[link.span.start, link.span.end, link.target] for link in outcome.links],
        "metadata": dict(outcome.metadata),
        "body_start": outcome.body_start,
        "encoding": outcome.encoding,
        "lossy": outcome.lossy,
        "notes": list(outcome.notes),
    }
    return header, outcome.text.encode("utf-8")


def outcome_from(header: Header, body: bytes) -> Extraction | Skip:
    """The outcome that a message carries, checked: spans in range and in order, pages and breaks ascending.

    Raises:
        ProtocolError: The message is not a valid outcome.
    """
    try:
        state = DocumentState(_text(header["state"]))
        if state is not DocumentState.OK:
            return Skip(state, _text(header["reason"]), _text(header["reader"]))
        extraction = _extraction(header, body.decode("utf-8"))
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"not an outcome: {error!r}") from error
    problem = misplaced(extraction)
    if problem:
        raise ProtocolError(problem)
    return extraction


def misplaced(extraction: Extraction) -> str:
    """What is wrong with the places in an extraction, or ""."""
    end = len(extraction.text)
    for name, spans in (
        ("heading", [h.span for h in extraction.headings]),
        ("verbatim", extraction.verbatim),
        ("link", [link.span for link in extraction.links]),
    ):
        if any(not 0 <= span.start < span.end <= end for span in spans):
            return f"a {name} span is outside of the text"
        if any(after.start < before.end for before, after in pairwise(spans)):
            return f"{name} spans are out of order"
    for name, offsets in (("page", extraction.page_starts), ("break", extraction.breaks)):
        if any(not 0 <= offset <= end for offset in offsets):
            return f"a {name} offset is outside of the text"
        if any(after < before for before, after in pairwise(offsets)):
            return f"{name} offsets are out of order"
    if not 0 <= extraction.body_start <= end:
        return "the body begins outside of the text"
    if extraction.page_starts and extraction.page_starts[0] != 0:
        return "the first page does not start at 0"
    return ""


def _extraction(header: Header, text: str) -> Extraction:
    metadata = header["metadata"]
    if not isinstance(metadata, dict):
        raise TypeError("metadata is not an object")
    headings = []
    for item in _list(header["headings"]):
        start, end, level, title = _list(item)
        headings.append(Heading(Span(_int(start), _int(end)), _int(level), _text(title)))
    verbatim = []
    for item in _list(header["verbatim"]):
        start, end = _list(item)
        verbatim.append(Span(_int(start), _int(end)))
    links = []
    for item in _list(header["links"]):
        start, end, target = _list(item)
        links.append(Link(Span(_int(start), _int(end)), _text(target)))
    return Extraction(
        text=text,
        reader=_text(header["reader"]),
        title=_text(header["title"]),
        language=_text(header["language"]),
        headings=tuple(headings),
        page_starts=tuple(map(_int, _list(header["page_starts"]))),
        breaks=tuple(map(_int, _list(header["breaks"]))),
        verbatim=tuple(verbatim),
        links=tuple(links),
        metadata=metadata,
        body_start=_int(header["body_start"]),
        encoding=_text(header["encoding"]),
        lossy=_int(header["lossy"]),
        notes=tuple(map(_text, _list(header["notes"]))),
    )


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {type(value).__name__}")
    return value


def _int(value: Json) -> int:
    if not isinstance(value, int):
        raise TypeError(f"expected a whole number, got {type(value).__name__}")
    return value


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return value
