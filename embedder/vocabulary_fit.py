"""How well a tokenizer fits a language: coverage, characters per token, unknown tokens. Trains nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True)
class VocabularyFit:
    """How well a tokenizer fits one language.

    Attributes:
        language: Name of the language.
        characters: Characters that are not white space.
        tokens: Tokens they became.
        unknown_tokens: Unknown ones among the tokens.
        covered: Share of the characters that are not inside an unknown token, in [0, 1].
        used: Different tokens that occurred.
    """

    language: str
    characters: int
    tokens: int
    unknown_tokens: int
    covered: float
    used: int

    @property
    def characters_per_token(self) -> float:
        """Compression: higher means shorter sequences."""
        return self.characters / self.tokens if self.tokens else 0.0

    @property
    def unknown_rate(self) -> float:
        """Share of unknown tokens, in [0, 1]."""
        return self.unknown_tokens / self.tokens if self.tokens else 0.0


def vocabulary_fit(
    tokenizer: PreTrainedTokenizerFast, texts: Iterable[str], *, language: str
) -> VocabularyFit:
    """Measure how well a tokenizer fits texts of one language.

    Args:
        tokenizer: Any fast tokenizer.
        texts: Of the language; text that the tokenizer was not trained on gives honest numbers.
        language: Name for the report.

    Example:
        >>> from likewise.embedder.vocabulary import VocabularySettings, train_vocabulary
        >>> tokenizer = train_vocabulary(["aa ab ba bb"] * 9, VocabularySettings(size=13))
        >>> fit = vocabulary_fit(tokenizer, ["aa bb 水"], language="en")
        >>> fit.characters, fit.tokens, fit.unknown_tokens, fit.covered
        (5, 3, 1, 0.8)
    """
    from tokenizers import Tokenizer

    # "[MASK]" or "<unk>" in a text are plain characters there. On a copy, as this changes the tokenizer.
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.encode_special_tokens = True
    unknown = tokenizer.unk_token_id
    characters = tokens = unknown_tokens = lost = 0
    used: set[int] = set()
    for text in texts:
        text = text.encode("utf-8", "replace").decode("utf-8")
        encoding = backend.encode(text, add_special_tokens=False)
        characters += _visible(text)
        tokens += len(encoding.ids)
        used.update(encoding.ids)
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if token == unknown:
                unknown_tokens += 1
                lost += _visible(text[start:end])
    covered = 1.0 - lost / characters if characters else 1.0
    return VocabularyFit(language, characters, tokens, unknown_tokens, covered, len(used))


def _visible(text: str) -> int:
    return sum(not character.isspace() for character in text)
