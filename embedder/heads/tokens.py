"""Texts to windows of token ids, with segments and places in the text, by the `tokenizers` library alone.

A window is what a model takes in one go. A text that is longer gives its first window or several overlapping
ones; nothing here decides what is done with them. Must not import transformers: predicting starts fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.texts import as_texts
from likewise.errors import EncoderError, UsageError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer
    from transformers import PreTrainedTokenizerBase

Cut = Literal["longest_first", "only_second"]

# Texts that are tokenized together: their encodings hold far more than the ids that are kept.
_BLOCK = 1_024
# Where only the beginning of a text counts, the rest is not even tokenized. A token has hardly ever more
# characters than this; a text of longer ones loses nothing but a few tokens at the end of its window.
_CHARACTERS_PER_TOKEN = 32


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Part of a text, or of a pair, as a model takes it.

    Attributes:
        ids: int32 of shape (tokens,), special tokens included.
        segments: uint8 of shape (tokens,): 0 for the first text, 1 for the second, as the tokenizer says;
            None for a model without segments.
        spans: int32 of shape (tokens, 2): characters of the text that each token stands for.
        part: int8 of shape (tokens,): 0 for tokens of the first text, 1 for the second, -1 for special ones.
    """

    ids: NDArray[np.int32]
    segments: NDArray[np.uint8] | None
    spans: NDArray[np.int32]
    part: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.ids)


class WindowTokenizer:
    """A tokenizer that gives windows.

    Args:
        tokenizer: A copy is kept, as cutting changes its state.
        pad_id: Fills batches up, and stands for a text without any token.
        segments: Whether the model takes segment ids.
    """

    def __init__(self, tokenizer: Tokenizer, *, pad_id: int, segments: bool) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.pad_id = pad_id
        self.segments = segments

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase, *, segments: bool) -> WindowTokenizer:
        """From a tokenizer of transformers.

        Raises:
            EncoderError: It is Python code, which knows no places in the text.
        """
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise EncoderError(
                f"expected a fast tokenizer, found {type(tokenizer).__name__}, which is Python code",
                remedy="save the model with its fast tokenizer",
            )
        return cls(backend, pad_id=tokenizer.pad_token_id or 0, segments=segments)

    @classmethod
    def load(cls, folder: Path, *, pad_id: int, segments: bool) -> WindowTokenizer:
        """From the `tokenizer.json` of a model.

        Raises:
            EncoderError: The file is missing or damaged.
        """
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # the library raises nothing more special
            raise EncoderError(f"no readable tokenizer.json in {folder}: {error}") from error
        return cls(tokenizer, pad_id=pad_id, segments=segments)

    def special_tokens(self, *, pair: bool) -> int:
        """Special tokens around a text or a pair."""
        count: int = self._tokenizer.num_special_tokens_to_add(pair)
        return count

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without special ones."""
        self._tokenizer.no_truncation()
        return [len(e) for e in self._encode_blocks(as_texts(texts), None, special=False)]

    def head(self, text: str, tokens: int) -> str:
        """The beginning of a text that has at most so many tokens."""
        self._tokenizer.no_truncation()
        [encoding] = self._tokenizer.encode_batch(as_texts([text]), add_special_tokens=False)
        return text if len(encoding) <= tokens else text[: encoding.offsets[tokens - 1][1]]

    def first(
        self, texts: Sequence[str], seconds: Sequence[str] | None = None, *, length: int
    ) -> tuple[list[Window], int]:
        """The beginning of each text, or of each pair, the longer of the two cut first.

        Args:
            texts: Any texts.
            seconds: Second texts of pairs, one for each text.
            length: Most tokens in a window, special tokens included.

        Returns:
            One window for each text, and how many texts were cut.
        """
        self._limit(length, 0, "longest_first", pair=seconds is not None)
        enough = max(4_096, _CHARACTERS_PER_TOKEN * length)
        whole = as_texts(texts)
        others = None if seconds is None else as_texts(seconds)
        heads = [text[:enough] for text in whole]
        tails = None if others is None else [text[:enough] for text in others]
        windows, cut = [], 0
        for number, encoding in enumerate(self._encode_blocks(heads, tails)):
            windows.append(self._window(encoding))
            lost = len(heads[number]) < len(whole[number]) or bool(encoding.overflowing)
            if tails is not None and others is not None:
                lost = lost or len(tails[number]) < len(others[number])
            cut += lost
        return windows, cut

    def all(
        self, texts: Sequence[str], seconds: Sequence[str] | None = None, *, length: int, overlap: int
    ) -> list[list[Window]]:
        """Overlapping windows that together hold every token; of pairs, the second text is cut.

        Args:
            texts: Any texts.
            seconds: Second texts of pairs, one for each text.
            length: Most tokens in a window, special tokens included.
            overlap: Tokens that two neighbouring windows share.

        Raises:
            UsageError: There is no room between the overlap and the special tokens, or for a second text.
        """
        pair = seconds is not None
        self._limit(length, overlap, "only_second" if pair else "longest_first", pair=pair)
        others = None if seconds is None else as_texts(seconds)
        encodings = self._encode_blocks(as_texts(texts), others)
        return [[self._window(part) for part in (encoding, *encoding.overflowing)] for encoding in encodings]

    def pairs(
        self, texts: Sequence[str], seconds: Sequence[str], *, length: int, overlap: int
    ) -> list[list[Window]]:
        """Windows of pairs that together hold every token of both texts.

        A text that fits into half a window stands in all windows of its pair, and the other one is cut into
        overlapping pieces. If both are longer, a window holds the pieces that stand at the same relative
        place of their texts.

        Args:
            texts: Any texts.
            seconds: One for each text.
            length: Most tokens in a window, special tokens included.
            overlap: Tokens that two neighbouring pieces share, at most a fourth of a piece.

        Raises:
            UsageError: There is no room for both texts.
        """
        self._limit(length, 0, "longest_first", pair=True)
        self._tokenizer.no_truncation()
        room = length - self.special_tokens(pair=True)
        sides = [as_texts(texts), as_texts(seconds)]
        places = [
            [np.array(e.offsets) for e in self._encode_blocks(side, None, special=False)] for side in sides
        ]
        windows = []
        for first, second, one, other in zip(*sides, *places, strict=True):
            if len(one) + len(other) <= room:
                cuts = [((0, len(first)), (0, len(second)))]
            else:
                half = room // 2
                share = max(half, room - len(other)), max(room - half, room - len(one))
                cuts = _in_step(_pieces(one, share[0], overlap), _pieces(other, share[1], overlap))
            group = []
            self._tokenizer.enable_truncation(length, strategy="longest_first")
            for (a, b), (c, d) in cuts:
                encoding = self._tokenizer.encode(first[a:b], second[c:d])
                window = self._window(encoding)
                moved = window.spans + np.array([[0], [a], [c]], dtype=np.int32)[window.part + 1]
                group.append(replace(window, spans=moved))
            windows.append(group)
        return windows

    def _limit(self, length: int, overlap: int, cut: Cut, *, pair: bool) -> None:
        room = length - self.special_tokens(pair=pair)
        if room - overlap < 1:
            raise UsageError(
                f"expected windows with room for new tokens, found {length} tokens of which "
                f"{self.special_tokens(pair=pair)} are special and {overlap} are shared"
            )
        self._tokenizer.enable_truncation(length, stride=overlap, strategy=cut)

    def _encode_blocks(
        self, texts: list[str], seconds: list[str] | None, *, special: bool = True
    ) -> Iterator[Encoding]:
        for start in range(0, len(texts), _BLOCK):
            block: list[Any] = texts[start : start + _BLOCK]
            if seconds is not None:
                block = list(zip(block, seconds[start : start + _BLOCK], strict=True))
            yield from self._tokenizer.encode_batch(block, add_special_tokens=special)

    def _window(self, encoding: Encoding) -> Window:
        if not len(encoding):  # no text and no special token, yet a model needs something
            ids, spans, part, segments = [self.pad_id], [(0, 0)], [-1], [0]
        else:
            ids, spans, segments = encoding.ids, encoding.offsets, encoding.type_ids
            part = [-1 if number is None else number for number in encoding.sequence_ids]
        return Window(
            np.array(ids, dtype=np.int32),
            np.array(segments, dtype=np.uint8) if self.segments else None,
            np.array(spans, dtype=np.int32),
            np.array(part, dtype=np.int8),
        )


def _pieces(spans: NDArray[np.int64], size: int, overlap: int) -> list[tuple[int, int]]:
    """Begin and end, in characters, of overlapping pieces of at most so many tokens."""
    if not len(spans):
        return [(0, 0)]
    step = size - min(overlap, size // 4)
    starts = range(0, max(1, len(spans) - size + step), step)
    return [(int(spans[at, 0]), int(spans[min(at + size, len(spans)) - 1, 1])) for at in starts]


def _in_step(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Pieces of two texts side by side; the text with fewer repeats some of its own.

    Example:
        >>> _in_step([(0, 5)], [(0, 3), (2, 6)])
        [((0, 5), (0, 3)), ((0, 5), (2, 6))]
    """
    count = max(len(one), len(other))
    return [(one[n * len(one) // count], other[n * len(other) // count]) for n in range(count)]
