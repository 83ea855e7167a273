"""Server-sent events: bytes in, the data of each event out (WHATWG HTML, section 9.2.6).

httpx splits text at every character that Unicode calls a line end, among them U+2028, which JSON may hold
unescaped; events end at CR, LF or CR LF only, so lines are split here. What the data means is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MAX_EVENT_BYTES = 8_000_000
"""A longer event is no piece of an answer; reading on would only fill the memory."""


class EventTooLong(ValueError):
    """An event longer than `MAX_EVENT_BYTES`."""


def event_data(chunks: Iterable[bytes]) -> Iterator[str]:
    r"""Data of the events in a byte stream; comments (keep-alives), names and ids are skipped.

    An event that the stream breaks off in is given too: many servers leave out the last empty line.

    Raises:
        EventTooLong: An event never ends.

    Example:
        >>> list(event_data([b": ping\n\ndata: {\"a\"", b": 1}\r\n\r\ndata:[DONE]\n"]))
        ['{"a": 1}', '[DONE]']
    """
    data: list[str] = []
    for line in _lines(chunks):
        if not line:
            if data:
                yield "\n".join(data)
                data = []
            continue
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
    if data:
        yield "\n".join(data)


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for chunk in chunks:
        # A CR at the end may be half of a CR LF: it waits for the next chunk.
        held = b"\r" if chunk.endswith(b"\r") else b""
        buffered = (rest + chunk.removesuffix(b"\r")).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *complete, rest = buffered.split(b"\n")
        rest += held
        if len(rest) > MAX_EVENT_BYTES:
            raise EventTooLong(f"a line of more than {MAX_EVENT_BYTES} bytes")
        for line in complete:
            yield line.decode("utf-8", "replace")
    yield from (line.decode("utf-8", "replace") for line in rest.replace(b"\r", b"\n").split(b"\n") if line)
