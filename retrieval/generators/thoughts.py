"""Leave out what a model thinks aloud before it answers.

Reasoning models open their text with `<think> ... </think>`. Servers that know the model send it apart,
others send it as part of the answer, where it would be taken for statements without citations.
"""

from __future__ import annotations

from collections.abc import Generator

from likewise.retrieval.generators.base import FinishReason

_OPEN, _CLOSE = "<think>", "</think>"


def without_thoughts(
    pieces: Generator[str, None, FinishReason], *, thinking: bool = False
) -> Generator[str, None, FinishReason]:
    r"""The pieces without a thought at their beginning; what follows passes through as it comes.

    Args:
        pieces: Of one text.
        thinking: Whether the prompt has opened the thought already.

    Example:
        >>> def pieces():
        ...     yield from ("<th", "ink>Who asks?</thi", "nk>\n\nOnce", " a year <think>.")
        ...     return "stop"
        >>> "".join(without_thoughts(pieces()))
        'Once a year <think>.'
    """
    held = ""
    try:
        while True:
            held += next(pieces)
            start = held.lstrip()
            if not thinking and start.startswith(_OPEN):
                thinking, held = True, start.removeprefix(_OPEN)
            if thinking:
                before, closed, after = held.partition(_CLOSE)
                # The end of what is held may be half of the closing mark.
                held = after if closed else before[-len(_CLOSE) :]
                thinking = not closed
                if closed:
                    break
            elif not _OPEN.startswith(start):
                break
        # White space between thought and answer belongs to neither.
        while not (held := held.lstrip()):
            held = next(pieces)
        yield held
        held = ""
        return (yield from pieces)
    except StopIteration as stop:
        # The text ended while part of it was held back: a thought without an end is no answer.
        if held and not thinking:
            yield held
        reason: FinishReason = stop.value
        return reason
    finally:
        pieces.close()
