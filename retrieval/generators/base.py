"""What a text generator is to the rest of likewise. Nothing here loads a model or opens a connection."""

from __future__ import annotations

from collections.abc import Generator as PythonGenerator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypedDict

if TYPE_CHECKING:
    from likewise.retrieval.tokens import TokenCounter

FinishReason = Literal["stop", "length", "unknown"]
"""Why a text ended: the model was done, its limit was reached, or nobody said."""


class Message(TypedDict):
    """One turn of a chat, as OpenAI-compatible servers and chat templates take it."""

    role: Literal["system", "user", "assistant"]
    content: str


class TextStream(Iterator[str]):
    """Pieces of a text as they are generated, and afterwards why it ended.

    Attributes:
        finish_reason: None until the last piece was taken.

    Args:
        pieces: A generator function's result that yields pieces and returns the finish reason.

    Example:
        >>> def pieces():
        ...     yield "Keys "
        ...     yield "rotate."
        ...     return "stop"
        >>> stream = TextStream(pieces())
        >>> "".join(stream), stream.finish_reason
        ('Keys rotate.', 'stop')
    """

    def __init__(self, pieces: PythonGenerator[str, None, FinishReason]) -> None:
        self._pieces = pieces
        self.finish_reason: FinishReason | None = None

    def __next__(self) -> str:
        try:
            return next(self._pieces)
        except StopIteration as stop:
            if self.finish_reason is None:
                self.finish_reason = stop.value or "unknown"
            raise StopIteration from None

    def close(self) -> None:
        """Stop generating and free what it holds. Closing twice does no harm."""
        self._pieces.close()


class Generator(Protocol):
    """Turns a conversation into the next text."""

    @property
    def name(self) -> str:
        """Model and place, for people."""
        ...

    @property
    def token_counter(self) -> TokenCounter | None:
        """Counts tokens as the model does; None if its tokenizer is not known."""
        ...

    def stream(self, messages: Sequence[Message]) -> Iterator[str]:
        """The answer in pieces, as they come; a `TextStream` where the reason of its end is known.

        Raises:
            GeneratorError: The model cannot be reached or run, or does not answer as its protocol says.
        """
        ...
