"""A deterministic encoder without a model: hashed n-grams, for tests, demonstrations and dry runs.

Texts that share words (or, in Chinese and Japanese, characters and pairs of them) get similar vectors; it
knows nothing of meaning. It must not read files, and must stay free of heavy imports.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b, sha256

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.protocol import Embeddings, Role
from likewise.embedder.texts import as_texts
from likewise.errors import EncoderNotFound, UsageError

# Raise when a text would get another vector: it is part of the fingerprint.
_VERSION = 1
_DIMENSION = 64
_MAX_TOKENS = 128

# Written without spaces between words: Han, kana, and the marks that repeat or prolong them.
_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|[^\w\s]")
_CJK_TOKEN = re.compile(rf"[{_CJK}]")


class HashEncoder:
    """Feature hashing of word and character n-grams into unit vectors (Weinberger et al. 2009).

    Each feature adds +1 or -1 to one of `dimension` counters, both chosen by its BLAKE2 digest; the counters
    are then L2-normalised. Features are case-folded words and their character trigrams; for Chinese and
    Japanese the characters and the pairs of neighbours.

    Args:
        dimension: Length of a vector, at least 1.
        max_tokens: Tokens of a text that count, at least 1; the rest is cut and reported.

    Raises:
        UsageError: An argument is out of range.

    Example:
        >>> encoder = HashEncoder()
        >>> vectors = encoder.encode_passages(["rotate a signing key", "signing keys rotate", "貓坐在墊子上"])
        >>> bool(vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[2])
        True
    """

    def __init__(self, dimension: int = _DIMENSION, max_tokens: int = _MAX_TOKENS) -> None:
        if dimension < 1 or max_tokens < 1:
            raise UsageError(
                f"expected a dimension and a token limit of at least 1, found {dimension} and {max_tokens}"
            )
        self._dimension = dimension
        self._max_tokens = max_tokens

    @classmethod
    def from_name(cls, name: str) -> HashEncoder:
        """The encoder that `name` stands for: `hash`, `hash:DIMENSION` or `hash:DIMENSION:MAX_TOKENS`.

        Raises:
            EncoderNotFound: The name has another form.

        Example:
            >>> HashEncoder.from_name("hash:32").dimension
            32
        """
        match = re.fullmatch(r"hash(?::([1-9]\d{0,5})(?::([1-9]\d{0,5}))?)?", name)
        if match is None:
            raise EncoderNotFound(
                f"expected hash, hash:DIMENSION or hash:DIMENSION:MAX_TOKENS, found {name!r}",
                remedy="hash:64",
            )
        dimension, max_tokens = match.groups()
        return cls(int(dimension or _DIMENSION), int(max_tokens or _MAX_TOKENS))

    @property
    def name(self) -> str:
        """A name that `from_name` turns into an equal encoder."""
        if self._max_tokens != _MAX_TOKENS:
            return f"hash:{self._dimension}:{self._max_tokens}"
        return "hash" if self._dimension == _DIMENSION else f"hash:{self._dimension}"

    @property
    def fingerprint(self) -> str:
        """Digest of the version, the dimension and the token limit."""
        return sha256(f"likewise-hash/{_VERSION}/{self._dimension}/{self._max_tokens}".encode()).hexdigest()

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    @property
    def passage_tokens(self) -> int:
        """Tokens of text that a passage may have."""
        return self._max_tokens

    def embed(self, texts: Sequence[str], *, role: Role) -> Embeddings:
        """Vectors of the texts, and the positions of those with more than `passage_tokens` tokens.

        Args:
            texts: Any number of texts. The role makes no difference to this encoder.
            role: `"query"` or `"passage"`.

        Raises:
            UsageError: `texts` is a single string or holds something else than strings.
        """
        checked = as_texts(texts)
        vectors = np.zeros((len(checked), self._dimension), dtype=np.float32)
        truncated = []
        for row, text in enumerate(checked):
            tokens = _TOKEN.findall(text)
            if len(tokens) > self._max_tokens:
                truncated.append(row)
            for feature in _features(tokens[: self._max_tokens]):
                bucket, sign = _place(feature, self._dimension)
                vectors[row, bucket] += sign
            if not vectors[row].any():
                # Nothing to hash, or everything cancelled out: still a unit vector, and always the same one.
                vectors[row, _place("", self._dimension)[0]] = 1.0
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return Embeddings(vectors, tuple(truncated))

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, float32 of shape (n, dimension)."""
        return self.embed(texts, role="query").vectors

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of passages, float32 of shape (n, dimension)."""
        return self.embed(texts, role="passage").vectors

    def token_spans(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Character spans of words, CJK characters and punctuation marks, each int32 of shape (tokens, 2).

        Example:
            >>> HashEncoder().token_spans(["你好, world"])[0].tolist()
            [[0, 1], [1, 2], [2, 3], [4, 9]]
        """
        return [
            np.array([match.span() for match in _TOKEN.finditer(text)], dtype=np.int32).reshape(-1, 2)
            for text in as_texts(texts)
        ]

    def unknown_share(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Zeros, float64 of shape (n,): hashing knows every token.

        Example:
            >>> HashEncoder().unknown_share(["keys", "金鑰"]).tolist()
            [0.0, 0.0]
        """
        return np.zeros(len(as_texts(texts)))


def _features(tokens: Sequence[str]) -> Iterator[str]:
    previous = ""
    for token in tokens:
        if _CJK_TOKEN.match(token):
            yield token
            if previous:
                yield previous + token
            previous = token
            continue
        previous = ""
        word = unicodedata.normalize("NFKC", token).casefold()
        if not any(character.isalnum() for character in word):
            continue  # punctuation says little about what a text is about
        yield word
        padded = f"<{word}>"
        yield from (f"#{padded[i : i + 3]}" for i in range(len(padded) - 2))


@lru_cache(maxsize=65536)
def _place(feature: str, dimension: int) -> tuple[int, float]:
    """Counter that a feature goes to, and its sign."""
    digest = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "little")
    return (digest >> 1) % dimension, 1.0 if digest & 1 else -1.0
