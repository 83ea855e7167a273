"""Text to token ids and back to places in the text, with the `tokenizers` library alone.

Which tokens a checkpoint makes is decided by several files and, for older ones, by code in transformers. So
`prepare_tokenizer` lets transformers build the tokenizer once and stores it as one `tokenizer.json`;
everything after that reads only this file. Must not import transformers elsewhere.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.cache import read_json, write_bytes, write_json
from likewise.embedder.spec import ModelSpec
from likewise.errors import EncoderError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

TOKENIZER_FILE = "tokenizer.json"
SETTINGS_FILE = "tokenizer-settings.json"

# A token has hardly ever more characters. Where it does, `TextTokenizer.rows` looks further.
_CHARACTERS_PER_TOKEN = 16
# Longer texts are tokenized in pieces by `TextTokenizer.spans`, so that memory does not follow their length.
_PIECE = 1 << 18


class TokenRow(NamedTuple):
    """Token ids of one input, special tokens included, and whether it had to be cut."""

    ids: list[int]
    truncated: bool


class TokenizerSettings(NamedTuple):
    """What is stored beside a tokenizer; see `TextTokenizer`."""

    pad_id: int
    empty_id: int
    keep_end: bool


class TextTokenizer:
    """A tokenizer with the token limit of its model.

    Args:
        tokenizer: Without truncation and padding.
        max_tokens: Most tokens of an input, special tokens included.
        pad_id: Id that fills batches up.
        empty_id: Stands for a text without any token.
        keep_end: Whether texts that are too long lose their beginning instead of their end.
    """

    def __init__(
        self, tokenizer: Tokenizer, *, max_tokens: int, pad_id: int, empty_id: int, keep_end: bool = False
    ) -> None:
        self._tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.pad_id = pad_id
        self._empty_id = empty_id
        self._keep_end = keep_end
        mask = tokenizer.encode("a").special_tokens_mask
        content = [position for position, special in enumerate(mask) if not special]
        self._before = content[0] if content else len(mask)
        self._after = len(mask) - 1 - content[-1] if content else 0

    @classmethod
    def load(cls, directory: Path, *, max_tokens: int) -> TextTokenizer:
        """The tokenizer that `prepare_tokenizer` stored.

        Raises:
            EncoderError: The files are missing or damaged.
        """
        tokenizer, settings = read_tokenizer(directory)
        return cls(
            tokenizer,
            max_tokens=max_tokens,
            pad_id=settings.pad_id,
            empty_id=settings.empty_id,
            keep_end=settings.keep_end,
        )

    @property
    def special_tokens(self) -> int:
        """Special tokens around a text."""
        return self._before + self._after

    def framed(self, ids: Sequence[int]) -> list[int]:
        """Token ids of a text with the special tokens of the model around them."""
        before, after = self._frame_ids
        return [*before, *ids, *after]

    @cached_property
    def _frame_ids(self) -> tuple[list[int], list[int]]:
        example = self._tokenizer.encode("a").ids
        return example[: self._before], example[len(example) - self._after :]

    @property
    def frame(self) -> tuple[int, int]:
        """Special tokens before and after a text."""
        return self._before, self._after

    @property
    def vocabulary_size(self) -> int:
        """Ids that a token may have: one more than the largest."""
        return int(max(self._tokenizer.get_vocab(with_added_tokens=True).values())) + 1

    def serialized(self) -> str:
        """The tokenizer as the content of a tokenizer.json."""
        content: str = self._tokenizer.to_str()
        return content

    def count(self, text: str) -> int:
        """Tokens of a text, without special ones."""
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    def prompt_tokens(self, prompt: str) -> int:
        """Tokens that a prompt takes away from the text behind it, at most."""
        return max(self.count(prompt), self.count(f"{prompt}a") - self.count("a")) if prompt else 0

    def prompt_length(self, prompt: str) -> int:
        """Leading tokens of an input that belong to the prompt, counted as sentence-transformers does."""
        return self._before + self.count(prompt) if prompt else 0

    def rows(self, texts: Sequence[str]) -> list[TokenRow]:
        """Token ids of the texts, each cut to `max_tokens`."""
        # A text of many megabytes costs memory and time for tokens that are thrown away at once.
        heads = [text if self._keep_end else text[: self._enough] for text in texts]
        encodings = self._tokenizer.encode_batch_fast(heads)
        rows = []
        for text, head, encoding in zip(texts, heads, encodings, strict=True):
            ids = encoding.ids
            seen = len(head)
            while seen < len(text) and len(ids) <= 2 * self.max_tokens:
                # Few tokens in many characters. The last one may be cut in two, hence twice the limit.
                seen *= 4
                ids = self._tokenizer.encode(text[:seen]).ids
            rows.append(self._cut(ids))
        return rows

    def spans(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Character spans of the texts' tokens, without special tokens, each int32 of shape (tokens, 2)."""
        found = []
        for text in texts:
            pieces = list(_pieces(text))
            encodings = self._encode_plain([text[start:end] for start, end in pieces])
            parts = [
                np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2) + start
                for encoding, (start, _) in zip(encodings, pieces, strict=True)
            ]
            found.append(np.concatenate(parts, dtype=np.int32) if parts else np.empty((0, 2), np.int32))
        return found

    def unknown_share(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Share of each text's tokens that are the unknown one, float64 of shape (n,); 0 without tokens."""
        shares = np.zeros(len(texts))
        if self._unknown_id is None:
            return shares
        for row, text in enumerate(texts):
            total = unknown = 0
            for encoding in self._encode_plain([text[start:end] for start, end in _pieces(text)]):
                total += len(encoding)
                unknown += encoding.ids.count(self._unknown_id)
            shares[row] = unknown / total if total else 0.0
        return shares

    @cached_property
    def _unknown_id(self) -> int | None:
        """Id of the token that stands for what is not in the vocabulary; None if there is none."""
        # Unigram models do not tell which one it is; SentencePiece calls it <unk>.
        name = getattr(self._tokenizer.model, "unk_token", None) or "<unk>"
        found: int | None = self._tokenizer.token_to_id(name)
        return found

    def _encode_plain(self, texts: list[str]) -> Iterator[Encoding]:
        # One at a time where there are several pieces: their encodings are large.
        return (self._tokenizer.encode(text, add_special_tokens=False) for text in texts)

    @property
    def _enough(self) -> int:
        return max(4096, 2 * _CHARACTERS_PER_TOKEN * self.max_tokens)

    def _cut(self, ids: list[int]) -> TokenRow:
        if not ids:
            return TokenRow([self._empty_id], truncated=False)
        if len(ids) <= self.max_tokens:
            return TokenRow(ids, truncated=False)
        tail = ids[len(ids) - self._after :]
        room = self.max_tokens - self._after
        if self._keep_end:
            head, content = ids[: self._before], ids[self._before : len(ids) - self._after]
            return TokenRow([*head, *content[len(content) - room + self._before :], *tail], truncated=True)
        return TokenRow([*ids[:room], *tail], truncated=True)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Ranges that make up a text, each of at most `_PIECE` characters, cut before white space if possible."""
    start = 0
    while len(text) - start > _PIECE:
        end = start + _PIECE
        for cut in range(end, end - 1024, -1):
            if text[cut].isspace():
                end = cut
                break
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


def read_tokenizer(directory: Path) -> tuple[Tokenizer, TokenizerSettings]:
    """What `prepare_tokenizer` stored.

    Raises:
        EncoderError: The files are missing or damaged.
    """
    from tokenizers import Tokenizer

    settings = read_json(directory / SETTINGS_FILE)
    try:
        content = (directory / TOKENIZER_FILE).read_bytes()
        if hashlib.sha256(content).hexdigest() != settings["sha256"]:
            raise ValueError("its content is not what was written")
        return Tokenizer.from_buffer(content), TokenizerSettings(
            int(settings["pad_id"]), int(settings["empty_id"]), bool(settings["keep_end"])
        )
    except Exception as error:  # the library raises bare Exception for any fault of the file
        if type(error) is not Exception and not isinstance(
            error, OSError | KeyError | TypeError | ValueError
        ):
            raise
        raise EncoderError(f"cannot read the tokenizer in {directory}: {error}") from error


def prepare_tokenizer(spec: ModelSpec, directory: Path) -> None:
    """Let transformers build the model's tokenizer and store it in `directory` as two JSON files.

    Raises:
        EncoderError: The tokenizer's files are missing or damaged, or only Python code can run it.
    """
    from tokenizers.normalizers import Lowercase, Sequence
    from transformers import AutoTokenizer

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            built = AutoTokenizer.from_pretrained(str(spec.transformer), local_files_only=True)
    except Exception as error:  # dozens of tokenizer classes, each with exceptions of its own
        raise EncoderError(
            f"cannot load the tokenizer in {spec.transformer}: {error}",
            remedy="save or download the model again, tokenizer included",
        ) from error
    backend = getattr(built, "backend_tokenizer", None)
    if backend is None:
        raise EncoderError(
            f"the tokenizer of {spec.name} ({type(built).__name__}) is Python code without a tokenizer.json",
            remedy="save the model with its fast tokenizer",
        )
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(backend.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if spec.lower_case:
        present = [tokenizer.normalizer] if tokenizer.normalizer is not None else []
        tokenizer.normalizer = Sequence([Lowercase(), *present])
    if tokenizer.get_vocab_size() == 0:
        raise EncoderError(f"the tokenizer in {spec.transformer} has no vocabulary")
    pad_id = built.pad_token_id if built.pad_token_id is not None else built.eos_token_id
    empty_id = built.eos_token_id if built.eos_token_id is not None else pad_id
    keep_end = getattr(built, "truncation_side", "right") == "left"
    write_tokenizer(tokenizer, TokenizerSettings(pad_id or 0, empty_id or 0, keep_end), directory)


def write_tokenizer(tokenizer: Tokenizer, settings: TokenizerSettings, directory: Path) -> None:
    """Store a tokenizer, without truncation and padding, for `read_tokenizer`."""
    content = tokenizer.to_str().encode()
    write_bytes(directory / TOKENIZER_FILE, content)
    write_json(
        directory / SETTINGS_FILE, {"sha256": hashlib.sha256(content).hexdigest(), **settings._asdict()}
    )
