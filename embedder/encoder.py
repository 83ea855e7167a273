"""The encoder that people use: texts in, unit vectors out.

Ties together what the other modules do: find the model, read what it says, identify it, prepare it, batch
texts and run them. Importing this module, and using a prepared encoder, imports neither torch nor
transformers.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likewise.embedder import encoder_identity
from likewise.embedder.batching import pad, plan_batches
from likewise.embedder.fingerprint import fingerprint
from likewise.embedder.prepare import Prepared, RuntimeName, prepare
from likewise.embedder.prompts import Prompts
from likewise.embedder.protocol import Embeddings, Role
from likewise.embedder.resolve import DEFAULT_ENCODER, resolve
from likewise.embedder.runtimes.base import unit_rows
from likewise.embedder.spec import ModelSpec, read_spec
from likewise.embedder.texts import as_texts
from likewise.embedder.tokenizer import TextTokenizer
from likewise.errors import UsageError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["DEFAULT_ENCODER", "Encoder", "encoder_identity"]

# Texts that are tokenized before any is computed: enough to find neighbours of like length among, few enough
# that memory stays the same for any number of texts.
_WINDOW = 1024
# A batch below this is not worth a thread of its own.
_SMALLEST_SHARE = 256


class Encoder:
    """A sentence encoder whose vectors do not depend on the batch, the runtime or the machine, but for noise.

    Made by `Encoder.load`. May be used by several threads at once.

    Example:
        >>> encoder = Encoder.load()
        >>> vectors = encoder.encode_passages(["A cat sat on the mat.", "Interest rates rose again."])
        >>> vectors.shape
        (2, 384)
        >>> [query] = encoder.encode_queries(["Where did the cat sit?"])
        >>> int((vectors @ query).argmax())
        0
    """

    def __init__(self, spec: ModelSpec, fingerprint: str, prepared: Prepared) -> None:
        self._spec = spec
        self._fingerprint = fingerprint
        self._tokenizer = prepared.tokenizer
        self._runtime = prepared.runtime
        self._prepared = prepared
        self._dimension = spec.dimension
        self._threads: ThreadPoolExecutor | None = None
        self.notices: tuple[str, ...] = (*spec.notices, *prepared.workshop.notices)

    @classmethod
    def load(
        cls,
        name_or_path: str | os.PathLike[str] | None = None,
        *,
        runtime: RuntimeName = "auto",
        device: str | None = None,
        pooling: str | None = None,
        max_tokens: int | None = None,
        prompts: Prompts | None = None,
        offline: bool | None = None,
    ) -> Encoder:
        """Load an encoder.

        The first time a model is used, it is converted for OpenVINO, which takes some seconds and imports
        torch; the result is kept in the cache folder (`LIKEWISE_CACHE`).

        Args:
            name_or_path: A Sentence Transformers directory, a plain Hugging Face checkpoint, a hub id, or
                None for the default encoder.
            runtime: `"auto"` is OpenVINO on the CPU, and torch on other devices and for models that OpenVINO
                does not run with the same result. The others are orders.
            device: A torch device such as `"cuda"`, or `"auto"` for the fastest there is; None for the CPU.
            pooling: One of `cls`, `max`, `mean`, `mean_sqrt_len_tokens`, `weightedmean` and `lasttoken`, or
                several joined by `+`, instead of what the model says.
            max_tokens: A lower limit than the model's own, special tokens included.
            prompts: Instead of what the model says.
            offline: Never ask the hub; None as `HF_HUB_OFFLINE` says. A model that is on this machine is
                never asked for.

        Raises:
            EncoderNotFound: There is no such model.
            ChecksumMismatch: Its weights are not the published ones.
            EncoderError: It is incomplete, damaged, or cannot be run.
            UsageError: The arguments make no sense.
        """
        location = resolve(name_or_path, offline=offline)
        spec = read_spec(
            location.directory, location.name, pooling=pooling, max_tokens=max_tokens, prompts=prompts
        )
        identity = fingerprint(spec, weights_sha256=location.weights_sha256)
        encoder = cls(spec, identity, prepare(spec, identity, runtime=runtime, device=device))
        for notice in encoder.notices:
            warnings.warn(notice, stacklevel=2)
        return encoder

    @property
    def name(self) -> str:
        """Hub id, or path of the folder."""
        return self._spec.name

    @property
    def fingerprint(self) -> str:
        """SHA-256 over weights, tokenizer, pooling, prompts and limits: equal fingerprints, equal vectors."""
        return self._fingerprint

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        if not self._dimension:
            self._dimension = self.embed(["a"], role="passage").vectors.shape[1]
        return self._dimension

    @property
    def max_tokens(self) -> int:
        """Tokens of an input, prompt and special tokens included."""
        return self._spec.max_tokens

    @property
    def passage_tokens(self) -> int:
        """Tokens of text that a passage may have: `max_tokens` less special tokens and prompt."""
        prompt = self._tokenizer.prompt_tokens(self._spec.prompts.passage)
        return max(1, self.max_tokens - self._tokenizer.special_tokens - prompt)

    @property
    def prompts(self) -> Prompts:
        """Text that is put in front of queries and passages."""
        return self._spec.prompts

    @property
    def pooling(self) -> tuple[str, ...]:
        """How the vectors of tokens become one; several modes are concatenated."""
        return self._spec.pooling

    @property
    def tokenizer(self) -> TextTokenizer:
        """What makes tokens of texts."""
        return self._tokenizer

    @property
    def runtime(self) -> str:
        """What computes the vectors, such as "openvino cpu bfloat16"."""
        return self._runtime.name

    def embed(self, texts: Sequence[str], *, role: Role) -> Embeddings:
        """Vectors of the texts, and the positions of those that were too long and were cut.

        Args:
            texts: Any number of texts of any length. An empty text has a vector like any other; a lone
                surrogate counts as U+FFFD.
            role: `"query"` or `"passage"`: which prompt to use.

        Returns:
            Vectors as float32 of shape (n, dimension), L2-normalised, in the order of the texts.

        Raises:
            UsageError: `texts` is a single string or holds something else than strings, or the role does not
                exist.
        """
        if role not in ("query", "passage"):
            raise UsageError(f"expected role query or passage, found {role!r}")
        checked = as_texts(texts)
        if not checked:
            return Embeddings(np.empty((0, self.dimension), dtype=np.float32), ())
        parts = []
        truncated: list[int] = []
        for start in range(0, len(checked), _WINDOW):
            vectors, cut = self._embed_window(checked[start : start + _WINDOW], self._spec.prompts.of(role))
            parts.append(vectors)
            truncated.extend(start + position for position in cut)
        return Embeddings(parts[0] if len(parts) == 1 else np.concatenate(parts), tuple(truncated))

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, float32 of shape (n, dimension), L2-normalised."""
        return self.embed(texts, role="query").vectors

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of passages, float32 of shape (n, dimension), L2-normalised."""
        return self.embed(texts, role="passage").vectors

    def encode_tokens(self, rows: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Vectors of token ids rather than of texts: a single piece of a word has no other form.

        Args:
            rows: Ids of each input, special tokens and prompt not included, at least one each and few enough.

        Returns:
            float32 of shape (n, dimension), L2-normalised, in the order of the rows.
        """
        framed = [self._tokenizer.framed(row) for row in rows]
        plan = plan_batches([len(row) for row in framed], budget=self._runtime.batch_tokens)
        vectors = np.empty((len(framed), self.dimension), dtype=np.float32)

        def run(positions: list[int]) -> NDArray[np.float32]:
            ids = [framed[position] for position in positions]
            return unit_rows(self._runtime.run(pad(ids, pad_id=self._tokenizer.pad_id)))

        for positions, found in zip(plan, self._map(run, plan), strict=True):
            vectors[positions] = found
        return vectors

    def token_spans(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Character spans of each text's tokens, shape (tokens, 2): uncut, no special tokens, no prompt."""
        return self._tokenizer.spans(as_texts(texts))

    def unknown_share(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Share of each text's tokens that are not in the vocabulary, float64 of shape (n,), in [0, 1].

        Example:
            >>> Encoder.load("all-MiniLM-L6-v2").unknown_share(["signing keys", "簽署金鑰"]).round(2).tolist()
            [0.0, 0.75]
        """
        return self._tokenizer.unknown_share(as_texts(texts))

    def __repr__(self) -> str:
        return f"Encoder({self.name!r}, runtime={self.runtime!r})"

    def _embed_window(self, texts: Sequence[str], prompt: str) -> tuple[NDArray[np.float32], list[int]]:
        rows = self._tokenizer.rows([prompt + text for text in texts] if prompt else texts)
        lengths = [len(row.ids) for row in rows]
        # Every thread should get something to do, even when there are few texts.
        share = max(_SMALLEST_SHARE, -(-sum(lengths) // self._runtime.concurrency))
        plan = plan_batches(lengths, budget=min(self._runtime.batch_tokens, share))
        unpooled = 0 if self._spec.include_prompt else self._tokenizer.prompt_length(prompt)

        def run(positions: list[int]) -> NDArray[np.float32]:
            ids = [rows[position].ids for position in positions]
            return unit_rows(self._runtime.run(pad(ids, pad_id=self._tokenizer.pad_id, unpooled=unpooled)))

        vectors: NDArray[np.float32] | None = None
        for positions, found in zip(plan, self._map(run, plan), strict=True):
            if vectors is None:
                vectors = np.empty((len(texts), found.shape[1]), dtype=np.float32)
            vectors[positions] = found
        assert vectors is not None  # there is at least one text
        return vectors, [position for position, row in enumerate(rows) if row.truncated]

    def _map(
        self, run: Callable[[list[int]], NDArray[np.float32]], plan: list[list[int]]
    ) -> Iterator[NDArray[np.float32]]:
        if len(plan) == 1 or self._runtime.concurrency == 1:
            return map(run, plan)
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(self._runtime.concurrency, thread_name_prefix="encoder")
        return self._threads.map(run, plan)
