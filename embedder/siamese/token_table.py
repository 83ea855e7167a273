"""Every distinct text of a training run, tokenized once.

Texts are known by number from then on. What is equal as text has one identity, whatever prompt stands in
front, so that the same text can be recognised in two columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.texts import as_texts
from likewise.embedder.tokenizer import TextTokenizer

_WINDOW = 4096  # texts that are tokenized at a time


class TokenTable:
    """Token ids of texts, by number.

    Args:
        tokenizer: Of the encoder that is trained.
        skip_prompt: Leave the tokens of the prompt out of the pooling.

    Example:
        >>> from tokenizers import Tokenizer, models, pre_tokenizers
        >>> words = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "b": 2, "q:": 3}, unk_token="[UNK]"))
        >>> words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        >>> table = TokenTable(TextTokenizer(words, max_tokens=2, pad_id=0, empty_id=0))
        >>> table.add(["a b", "b", "a b"]).tolist(), table.add(["b"], prompt="q: ").tolist()
        ([0, 1, 0], [2])
        >>> table.ids(2).tolist(), table.identity[1] == table.identity[2]
        ([3, 2], True)
    """

    def __init__(self, tokenizer: TextTokenizer, *, skip_prompt: bool = False) -> None:
        self._tokenizer = tokenizer
        self._skip_prompt = skip_prompt
        self._numbers: dict[tuple[str, str], int] = {}
        self._identities: dict[str, int] = {}
        self._rows: list[NDArray[np.int32]] = []
        self._digest = hashlib.sha256()
        self.identity: list[int] = []
        """Of each number: equal for equal texts, outer white space and prompt aside."""
        self.unpooled: list[int] = []
        """Of each number: leading tokens that do not count in the pooling."""
        self.truncated: list[bool] = []
        """Of each number: whether the text was longer than the encoder takes."""

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def pad_id(self) -> int:
        """Fills batches up."""
        return self._tokenizer.pad_id

    @property
    def frame(self) -> tuple[int, int]:
        """Special tokens before and after a text."""
        return self._tokenizer.frame

    @property
    def fingerprint(self) -> str:
        """Digest of all token ids in order."""
        return self._digest.hexdigest()

    def ids(self, number: int) -> NDArray[np.int32]:
        """Token ids of a text, special tokens included."""
        return self._rows[number]

    def lengths(self) -> NDArray[np.int64]:
        """Tokens of every text."""
        return np.array([len(row) for row in self._rows], dtype=np.int64)

    def add(self, texts: Sequence[str], *, prompt: str = "") -> NDArray[np.int64]:
        """Take texts in and return their numbers; a text that is known keeps its number.

        Args:
            texts: Any number of texts.
            prompt: Put in front of each.
        """
        texts = as_texts(texts)
        fresh = [text for text in dict.fromkeys(texts) if (prompt, text) not in self._numbers]
        skipped = self._tokenizer.prompt_length(prompt) if self._skip_prompt else 0
        for start in range(0, len(fresh), _WINDOW):
            window = fresh[start : start + _WINDOW]
            for text, row in zip(
                window, self._tokenizer.rows([prompt + text for text in window]), strict=True
            ):
                self._numbers[prompt, text] = len(self._rows)
                ids = np.array(row.ids, dtype=np.int32)
                self._rows.append(ids)
                self._digest.update(ids.tobytes() + b"|")
                self.truncated.append(row.truncated)
                self.unpooled.append(skipped)
                self.identity.append(self._identities.setdefault(text.strip(), len(self._identities)))
        return np.array([self._numbers[prompt, text] for text in texts], dtype=np.int64)
