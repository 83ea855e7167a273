"""Turn documents into a corpus of token ids on disk: one pass, a stream, renamed into place when complete.

Neither text nor ids have to fit into memory; what stays there is a 64-bit hash and a length per document.
What documents are and where they come from is the caller's business.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.corpus import FORMAT, CorpusCounts, TokenCorpus
from likewise.embedder.sentences import split_sentences
from likewise.errors import DataError, TrainingError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Characters tokenised at a time: enough to keep all threads of the tokenizer busy, small in memory.
_GROUP = 4_000_000
# Fewer different tokens than this make no corpus.
_VARIETY = 5


@dataclass(frozen=True)
class SourceText:
    """A document before tokenisation.

    Attributes:
        text: All of it.
        sentences: Start of each sentence in `text`, rising, the first 0; None splits at punctuation and line
            ends.
    """

    text: str
    sentences: Sequence[int] | None = None


def build_corpus(
    documents: Iterable[SourceText],
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    *,
    held_out: float = 0.01,
    source: str = "",
) -> TokenCorpus:
    """Tokenise documents into a corpus on disk.

    Identical documents are kept once. A document is held out by the hash of its text, so that the split does
    not depend on order or company; a corpus of two documents or more always holds out at least one, and
    never all.

    Args:
        documents: Read once, in order.
        tokenizer: Splits text into ids; text that looks like a special token is split like any other.
        folder: Where the corpus goes; what stood there is replaced at the end.
        held_out: Share of the documents to hold out, in [0, 1); 0 holds out none.
        source: Whatever identifies the documents, part of the fingerprint.

    Returns:
        The corpus.

    Raises:
        DataError: No document has a token, or all consist of a word or two repeated.
        TrainingError: The corpus cannot be written.
    """
    if not 0 <= held_out < 1:
        raise DataError(f"expected a share of documents to hold out in [0, 1), found {held_out}")
    draft = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        counts = _write(documents, tokenizer, draft, held_out)
        record = {
            "format": FORMAT,
            "fingerprint": corpus_fingerprint(tokenizer, held_out=held_out, source=source),
            "dtype": _dtype(tokenizer).str,
            "counts": vars(counts),
        }
        (draft / "corpus.json").write_text(json.dumps(record), "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(draft, folder)
    except OSError as error:
        raise TrainingError(f"the corpus could not be written to {folder}: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return TokenCorpus(folder)


def open_or_build_corpus(
    documents: Callable[[], Iterable[SourceText]],
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    *,
    held_out: float = 0.01,
    source: str,
) -> TokenCorpus:
    """The corpus in the folder if it is of the same documents and tokenizer, else a new one.

    Args:
        documents: Called only if the corpus has to be built.
        tokenizer: Splits text into ids.
        folder: Where the corpus is, or goes.
        held_out: Share of the documents to hold out.
        source: Whatever identifies the documents, such as names, sizes and times of files.
    """
    expected = corpus_fingerprint(tokenizer, held_out=held_out, source=source)
    try:
        corpus = TokenCorpus(folder)
        if corpus.fingerprint == expected:
            return corpus
    except DataError:
        pass  # missing or damaged: built anew, which is what its message asks for
    return build_corpus(documents(), tokenizer, folder, held_out=held_out, source=source)


def corpus_fingerprint(tokenizer: PreTrainedTokenizerBase, *, held_out: float, source: str) -> str:
    """Hexadecimal digest of everything that changes a corpus but the documents' text itself."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    vocabulary = (
        backend.to_str() if backend is not None else json.dumps(sorted(tokenizer.get_vocab().items()))
    )
    content = json.dumps([FORMAT, vocabulary, held_out, source])
    return hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _write(
    documents: Iterable[SourceText], tokenizer: PreTrainedTokenizerBase, draft: Path, held_out: float
) -> CorpusCounts:
    encode = _encoder(tokenizer)
    dtype = _dtype(tokenizer)
    seen: set[int] = set()
    hashes: list[int] = []
    sizes: list[int] = []
    tokens = sentences = characters = duplicates = empty = 0
    varied: set[int] = set()  # the first few different ids, to tell a corpus from a word repeated
    with (
        (draft / "tokens.bin").open("wb") as ids_file,
        (draft / "sentences.bin").open("wb") as sentences_file,
        (draft / "documents.bin").open("wb") as documents_file,
    ):
        _append(sentences_file, [0])
        _append(documents_file, [0])
        for group in _groups(documents):
            fresh: list[SourceText] = []
            for document in group:
                digest = _hash(document.text)
                if digest in seen:
                    duplicates += 1
                else:
                    seen.add(digest)
                    hashes.append(digest)
                    fresh.append(document)
            parts = [_split(document) for document in fresh]
            encoded = iter(encode([sentence for part in parts for sentence in part]))
            for document, part in zip(fresh, parts, strict=True):
                rows = [row for row in itertools.islice(encoded, len(part)) if len(row)]
                if not rows:
                    empty += 1
                    hashes.pop(len(sizes))
                    continue
                flat = np.concatenate(rows)
                ids_file.write(flat.astype(dtype).tobytes())
                _append(sentences_file, tokens + np.cumsum([len(row) for row in rows]))
                if len(varied) < _VARIETY:
                    varied.update(flat[:1000].tolist())
                tokens += len(flat)
                sentences += len(rows)
                characters += len(document.text)
                sizes.append(len(flat))
                _append(documents_file, [sentences])
    if not sizes:
        raise DataError(
            f"expected documents with text, found {empty + duplicates} documents without a single token",
            remedy="name a folder with text documents",
        )
    if len(varied) < _VARIETY:
        raise DataError(
            f"expected a corpus of many words, found {len(varied)} different tokens in {tokens}",
            remedy="give more text: there is nothing to learn from a word or two repeated",
        )
    out = _choose_held_out(np.array(hashes, dtype=np.uint64), held_out)
    (draft / "held-out.bin").write_bytes(out.astype(np.uint8).tobytes())
    return CorpusCounts(len(sizes), int(out.sum()), sentences, tokens, characters, duplicates, empty)


def _choose_held_out(hashes: NDArray[np.uint64], share: float) -> NDArray[np.bool_]:
    chosen: NDArray[np.bool_] = hashes < np.uint64(int(share * 2**64))
    if share and len(hashes) > 1:
        chosen[int(hashes.argmin())] = True
        chosen[int(hashes.argmax())] = False
    return chosen


def _encoder(tokenizer: PreTrainedTokenizerBase) -> Callable[[list[str]], Iterator[NDArray[np.int64]]]:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:

        def slow(texts: list[str]) -> Iterator[NDArray[np.int64]]:
            for text in texts:
                tokens = tokenizer.tokenize(text, split_special_tokens=True)
                yield np.array(tokenizer.convert_tokens_to_ids(tokens), dtype=np.int64)

        return slow
    from tokenizers import Tokenizer

    copy = Tokenizer.from_str(backend.to_str())  # a copy, as these settings would change the caller's
    copy.no_truncation()
    copy.no_padding()
    copy.encode_special_tokens = True

    def fast(texts: list[str]) -> Iterator[NDArray[np.int64]]:
        for encoding in copy.encode_batch_fast(texts, add_special_tokens=False):
            yield np.array(encoding.ids, dtype=np.int64)

    return fast


def _split(document: SourceText) -> list[str]:
    text = document.text.encode("utf-8", "replace").decode("utf-8")  # tokenizers reject lone surrogates
    starts = split_sentences(text) if document.sentences is None else list(document.sentences)
    if starts != sorted(starts) or (starts and not 0 <= starts[0] <= starts[-1] <= len(text)):
        raise DataError("expected rising sentence starts inside the document")
    edges = sorted({0, *starts, len(text)})
    return [text[begin:end] for begin, end in itertools.pairwise(edges)]


def _groups(documents: Iterable[SourceText]) -> Iterator[list[SourceText]]:
    group: list[SourceText] = []
    size = 0
    for document in documents:
        group.append(document)
        size += len(document.text)
        if size >= _GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def _hash(text: str) -> int:
    """64 bits: among ten million documents the odds of one false duplicate are below 1 in 300,000."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def _dtype(tokenizer: PreTrainedTokenizerBase) -> np.dtype[Any]:
    return np.dtype("<u2" if len(tokenizer) <= 2**16 else "<u4")


def _append(file: BinaryIO, values: Sequence[int] | NDArray[np.integer]) -> None:
    file.write(np.asarray(values, dtype="<i8").tobytes())
