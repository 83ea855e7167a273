"""Which tokens a static encoder has: those of its teacher, and perhaps whole words of a corpus.

A word that the teacher spells in pieces gets a vector of its own: the teacher's of the whole word says more
than the mean of the pieces. Token ids of the teacher stay what they are; words come after them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.tokenizer import TextTokenizer
from likewise.errors import UsageError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# A word that stands in a corpus less often is likely a slip of the pen, or a name of one document.
_LEAST_COUNT = 3


@dataclass(frozen=True)
class StaticTokens:
    """The vocabulary of a static encoder.

    Attributes:
        tokenizer: Splits texts into it: no special tokens, no padding.
        spelling: For each id, the ids of the teacher that spell it; empty for tokens that mean nothing.
        words: How many whole words were added.
    """

    tokenizer: Tokenizer
    spelling: tuple[tuple[int, ...], ...]
    words: int = 0

    def __len__(self) -> int:
        return len(self.spelling)

    def rows(self, texts: Sequence[str], most: int | None = None) -> list[NDArray[np.int32]]:
        """Token ids of texts, cut after `most` of them."""
        encodings = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(encoding.ids[:most], dtype=np.int32) for encoding in encodings]


def static_tokens(teacher: TextTokenizer, texts: Iterable[str] = (), *, words: int = 0) -> StaticTokens:
    """The vocabulary for the student of a teacher.

    Args:
        teacher: Tokenizer of the teacher.
        texts: Where to look for words.
        words: How many to add at most: the most frequent ones that the teacher spells in pieces.

    Raises:
        UsageError: Words are wanted, but the teacher's tokenizer is of a kind that cannot take any.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(teacher.serialized())
    tokenizer.post_processor = None
    size = teacher.vocabulary_size
    meaningless = {id for id, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    meaningless |= {id for token, id in tokenizer.get_vocab().items() if token.startswith("[unused")}
    spelling = [() if id in meaningless else (id,) for id in range(size)]
    if not words:
        return StaticTokens(tokenizer, tuple(spelling))
    description: dict[str, Any] = json.loads(tokenizer.to_str())
    kind = description["model"]["type"]
    if kind != "WordPiece":
        raise UsageError(
            f"whole words fit into a WordPiece vocabulary, and the teacher's is {kind}",
            remedy="--words 0",
        )
    vocabulary: dict[str, int] = description["model"]["vocab"]
    unknown = vocabulary.get(description["model"]["unk_token"])
    for word in frequent_words(tokenizer, texts):
        if len(spelling) == size + words:
            break
        pieces = tuple(tokenizer.encode(word, add_special_tokens=False).ids)
        if word not in vocabulary and len(pieces) > 1 and unknown not in pieces:
            vocabulary[word] = len(spelling)
            spelling.append(pieces)
    return StaticTokens(Tokenizer.from_str(json.dumps(description)), tuple(spelling), len(spelling) - size)


def frequent_words(tokenizer: Tokenizer, texts: Iterable[str]) -> list[str]:
    """Words as the tokenizer normalises and divides them, the most frequent first."""
    counts: Counter[str] = Counter()
    for text in texts:
        normal = text if tokenizer.normalizer is None else tokenizer.normalizer.normalize_str(text)
        divider = tokenizer.pre_tokenizer
        counts.update(
            normal.split() if divider is None else (word for word, _ in divider.pre_tokenize_str(normal))
        )
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, count in ordered if count >= _LEAST_COUNT]


def count_tokens(rows: Iterable[NDArray[np.int32]], size: int) -> NDArray[np.int64]:
    """How often each token stands in rows of ids: int64 of shape (size,)."""
    counts = np.zeros(size, dtype=np.int64)
    for row in rows:
        found = np.bincount(row)
        counts[: len(found)] += found
    return counts
