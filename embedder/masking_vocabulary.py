"""What masking has to know of a vocabulary: the mask token, the ordinary tokens, and where words begin.

Nothing here draws random numbers or knows a tokenizer library; tokens come as a list of strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.segmenters import Segmenter
from likewise.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class MaskingVocabulary:
    """What masking needs to know of a vocabulary.

    Attributes:
        mask_id: Id of the mask token.
        ordinary_ids: Integers: all ids but the special ones; random replacements are drawn from these.
        continues: Bool of shape (vocabulary,): the token goes on with the word of the token before it. Needed
            for whole words and spans of words; None if not known.
        tokens: The tokens as text; needed with a segmenter only.
        segment: Cuts runs of single Chinese characters into words, see `segmented_words`; None leaves each a
            word of its own.
    """

    mask_id: int
    ordinary_ids: NDArray[np.int64]
    continues: NDArray[np.bool_] | None = None
    tokens: Sequence[str] = ()
    segment: Segmenter | None = None

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[str],
        *,
        mask_token: str | None,
        special_tokens: Sequence[str],
        segment: Segmenter | None = None,
    ) -> MaskingVocabulary:
        """Read a vocabulary; how words are marked is recognised from the tokens.

        WordPiece marks continuations ("##ing"), byte-level BPE ("Ġing") and SentencePiece ("▁ing") mark
        starts.

        Args:
            tokens: All tokens, in the order of their ids.
            mask_token: The token that stands for a hidden one.
            special_tokens: Tokens that never stand for text, the mask token included.
            segment: Cuts Chinese into words.

        Raises:
            DataError: There is no mask token, or nothing but special tokens.

        Example:
            >>> tokens, special = ["[PAD]", "[MASK]", "play", "##ing"], ["[PAD]", "[MASK]"]
            >>> words = MaskingVocabulary.from_tokens(tokens, mask_token="[MASK]", special_tokens=special)
            >>> words.mask_id, words.ordinary_ids.tolist(), words.continues.tolist()
            (1, [2, 3], [False, False, False, True])
        """
        special = set(special_tokens)
        if mask_token is None or mask_token not in tokens:
            raise DataError(
                f"expected a tokenizer with a mask token, found {mask_token!r} as its mask token",
                remedy="choose an objective without masks (recipe gpt), or a tokenizer with [MASK]",
            )
        ordinary = np.array([at for at, token in enumerate(tokens) if token not in special], dtype=np.int64)
        if not len(ordinary):
            raise DataError(
                f"expected a vocabulary with ordinary tokens, found {len(tokens)} special ones only"
            )
        starts = next((mark for mark in ("Ġ", "▁") if any(token.startswith(mark) for token in tokens)), None)
        if starts is None:
            continues = [token.startswith("##") for token in tokens]
        else:
            continues = [not token.startswith(starts) and token not in special for token in tokens]
        return cls(
            tokens.index(mask_token), ordinary, np.array(continues, dtype=bool), tuple(tokens), segment
        )

    def word_numbers(self, ids: NDArray[np.integer], special: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Number the words of a sequence: tokens of one word share a number, special tokens have -1.

        Raises:
            DataError: The vocabulary does not say where words begin.
        """
        if self.continues is None:
            raise DataError("whole-word masking needs a vocabulary that marks where words begin")
        # A continuation after a special token has lost its word to a cut and counts as the start of one.
        after_special = np.concatenate(([True], special[:-1])) if len(special) else special
        starts = ~special & (~self.continues[ids] | after_special)
        words = np.where(special, -1, np.cumsum(starts) - 1).astype(np.int64)
        if self.segment is None:
            return words
        return segmented_words([self.tokens[at] for at in ids.tolist()], words, self.segment)


def segmented_words(
    tokens: Sequence[str],
    words: NDArray[np.integer],
    segmenter: Segmenter,
) -> NDArray[np.int64]:
    """Join single Chinese characters into words, for whole-word masking (Cui et al. 2019, 1906.08101).

    BERT's tokenizers make a token of every Chinese character, so the token groups know no Chinese words. A
    segmenter does.

    Args:
        tokens: The tokens as text, (length,).
        words: Word numbers from `MaskingVocabulary.word_numbers`.
        segmenter: Cuts a run of Chinese characters into words that together are the run again.

    Returns:
        New word numbers of shape (length,).

    Raises:
        DataError: The segmenter lost or changed characters.

    Example:
        >>> tokens, words = ["[CLS]", "北", "京", "好", "[SEP]"], np.array([-1, 0, 1, 2, -1])
        >>> segmented_words(tokens, words, lambda run: ["北京", "好"])
        array([-1,  0,  0,  1, -1])
    """
    joined = np.full(len(tokens), -1, dtype=np.int64)
    number = -1
    at = 0
    while at < len(tokens):
        end = at
        while end < len(tokens) and words[end] >= 0 and _is_chinese_character(tokens[end]):
            end += 1
        if end > at:
            run = "".join(tokens[at:end])
            parts = [part for part in segmenter(run) if part]
            if "".join(parts) != run:
                raise DataError(f"expected a segmenter that keeps its text, found {parts!r} for {run!r}")
            for part in parts:
                number += 1
                joined[at : at + len(part)] = number
                at += len(part)
            continue
        if words[at] >= 0:
            # The first token of a word, or the first after Chinese, starts a word.
            if at == 0 or words[at] != words[at - 1]:
                number += 1
            joined[at] = number
        at += 1
    return joined


def _is_chinese_character(token: str) -> bool:
    """Whether a token is one ideograph: a unified one, of an extension, or a compatibility form."""
    ranges = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
    return len(token) == 1 and any(low <= ord(token) <= high for low, high in ranges)
