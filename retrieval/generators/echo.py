"""A generator without a model: repeats what it is told. For tests, demonstrations and dry runs."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence

from likewise.errors import GeneratorError
from likewise.retrieval.generators.base import FinishReason, Message, TextStream

_WORD = re.compile(r"\S*\s*")


class EchoGenerator:
    """Streams a fixed reply, or the last message from the user, word by word.

    Args:
        reply: What to answer, whatever was asked; None repeats the last user message.

    Example:
        >>> list(EchoGenerator("Once a year [1].").stream([{"role": "user", "content": "How often?"}]))
        ['Once ', 'a ', 'year ', '[1].']
        >>> "".join(EchoGenerator().stream([{"role": "user", "content": "How often?"}]))
        'How often?'
    """

    def __init__(self, reply: str | None = None) -> None:
        self._reply = reply

    @property
    def name(self) -> str:
        """Always `echo`."""
        return "echo"

    @property
    def token_counter(self) -> None:
        """It has no tokenizer."""
        return None

    def stream(self, messages: Sequence[Message]) -> TextStream:
        """The reply in words.

        Raises:
            GeneratorError: There is nothing to repeat.
        """
        asked = [message["content"] for message in messages if message["role"] == "user"]
        if self._reply is None and not asked:
            raise GeneratorError("expected a message from the user to repeat, found none")
        return TextStream(_words(asked[-1] if self._reply is None else self._reply))


def _words(text: str) -> Generator[str, None, FinishReason]:
    yield from (word for word in _WORD.findall(text) if word)
    return "stop"
