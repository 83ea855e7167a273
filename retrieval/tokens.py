"""Counting tokens: with the index's encoder, or exactly as the generator does.

A budget is only kept exactly if it is counted with the tokenizer of the model that reads the text. The
encoder's own tokenizer is the default because it is always there; it is usually within a few per cent for
English, and further off for other scripts. Counts leave out the special tokens that a model adds by itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder


HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?", re.ASCII)
"""What may be the name of a model on the hub, and not a path."""


class TokenCounter(Protocol):
    """Tells how many tokens a text has."""

    @property
    def name(self) -> str:
        """Which tokenizer counts, for people."""
        ...

    def count(self, text: str) -> int:
        """Number of tokens of the text, special tokens left out, nothing cut."""
        ...


class EncoderTokenCounter:
    """Counts as an encoder does. The encoder is asked for once, when the first text is counted.

    Example:
        >>> from likewise.embedder.hash_encoder import HashEncoder
        >>> EncoderTokenCounter(HashEncoder).count("你好, world")
        4
    """

    def __init__(self, encoder: Callable[[], TextEncoder]) -> None:
        self._load = encoder

    @cached_property
    def _encoder(self) -> TextEncoder:
        return self._load()

    @property
    def name(self) -> str:
        """Name of the encoder."""
        return self._encoder.name

    def count(self, text: str) -> int:
        """Number of tokens of the text."""
        return len(self._encoder.token_spans([text])[0])


class TokenizerCounter:
    """Counts with a `tokenizers.Tokenizer` or a Hugging Face tokenizer."""

    def __init__(self, name: str, count: Callable[[str], int]) -> None:
        self._name = name
        self._count = count

    @property
    def name(self) -> str:
        """Path or hub id that the tokenizer was loaded from."""
        return self._name

    def count(self, text: str) -> int:
        """Number of tokens of the text."""
        return self._count(text)


def load_token_counter(name_or_path: str | os.PathLike[str]) -> TokenizerCounter:
    """A counter for the tokenizer of a generator.

    Args:
        name_or_path: A `tokenizer.json`, a model folder, or a hub id. A hub id is looked for in the local
            cache first, and on the hub only if it is not there and `HF_HUB_OFFLINE` is not set.

    Raises:
        UsageError: Nothing is found there, or what is found is no tokenizer.

    Example:
        >>> load_token_counter("no/such/folder/tokenizer.json")
        Traceback (most recent call last):
        ...
        likewise.errors.UsageError: no tokenizer at no/such/folder/tokenizer.json
          try: give a tokenizer.json, a model folder, or a hub id such as Qwen/Qwen3-0.6B
    """
    name = os.fspath(name_or_path)
    path = Path(name).expanduser()
    if name and path.is_dir():  # an empty path would be the working directory
        file = path / "tokenizer.json"
        return _from_file(name, file) if file.is_file() else _from_folder(name, path)
    if path.is_file():
        return _from_file(name, path)
    if path.suffix == ".json" or not HUB_ID.fullmatch(name):
        raise _missing(name)
    return _from_file(name, _from_hub(name))


def _from_file(name: str, path: Path) -> TokenizerCounter:
    from tokenizers import Tokenizer

    try:
        # Read here, so that the library only ever complains about content.
        tokenizer: Any = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the tokenizer {path}: {error.strerror or error}") from error
    except Exception as error:  # the library raises plain Exception for malformed files
        raise UsageError(
            f"expected a tokenizer.json of the tokenizers library, found something else in {path}: {error}",
            remedy="give the tokenizer.json that lies beside the generator's weights",
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return TokenizerCounter(name, lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids))


def _from_folder(name: str, path: Path) -> TokenizerCounter:
    """A folder whose tokenizer is in an older form (vocab.txt, a SentencePiece model)."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(path), local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise UsageError(
            f"expected a folder with a tokenizer, found none that can be read in {path}: {error}",
            remedy="give a folder that holds tokenizer.json",
        ) from error
    return counter_of(tokenizer, name)


def counter_of(tokenizer: Any, name: str) -> TokenizerCounter:
    """A counter for a Hugging Face tokenizer that is already loaded."""

    def count(text: str) -> int:
        # `verbose=False`: a text longer than the model's window is no news to someone who counts.
        return len(tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"])

    return TokenizerCounter(name, count)


def _from_hub(name: str) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.constants import HF_HUB_OFFLINE
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(name, "tokenizer.json", local_files_only=True))
    except LocalEntryNotFoundError:
        if HF_HUB_OFFLINE:
            raise _missing(name) from None
    except HFValidationError:
        raise _missing(name) from None
    try:
        return Path(hf_hub_download(name, "tokenizer.json"))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise UsageError(
            f"no tokenizer {name!r} in the local cache, and the hub did not give it: {error}",
            remedy="give the path of a tokenizer.json",
        ) from error


def _missing(name: str) -> UsageError:
    return UsageError(
        f"no tokenizer at {name}",
        remedy="give a tokenizer.json, a model folder, or a hub id such as Qwen/Qwen3-0.6B",
    )
