"""Scores how well passages answer a query, by reading each together with it (Nogueira & Cho 2019).

More exact than comparing vectors and thousands of times slower, so it is for a few candidates that a search
has found. Any Hugging Face sequence classifier with one label will do, which is what sentence-transformers
calls a CrossEncoder; its scores are that library's. Using a prepared one imports neither torch nor
transformers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from likewise.embedder.batching import Batch, PairBatch, plan_batches
from likewise.embedder.cache import cache_root
from likewise.embedder.fingerprint import fingerprint
from likewise.embedder.prepare import RuntimeName, Workshop, open_or_make
from likewise.embedder.resolve import resolve
from likewise.embedder.runtimes.base import Runtime
from likewise.embedder.spec import ModelSpec, read_config, read_spec
from likewise.embedder.texts import as_texts
from likewise.embedder.tokenizer import prepare_tokenizer, read_tokenizer
from likewise.errors import EncoderError, UsageError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Activation = Literal["sigmoid", "identity"]

_PROBES = (
    ("How do I rotate a signing key?", "Create the new key first, then retire the old one."),
    ("如何輪換簽署金鑰？", "先建立新的金鑰，再停用舊的金鑰。"),
    ("a", ""),
    ("holiday", "Every employee has thirty days of holiday. " * 40),
)


class CrossEncoder:
    """A model that scores pairs of texts. Made by `CrossEncoder.load`; may be used by several threads."""

    def __init__(
        self,
        spec: ModelSpec,
        pairs: _PairTokenizer,
        runtime: Runtime,
        activation: Activation,
        workshop: Workshop,
    ) -> None:
        self._spec = spec
        self._pairs = pairs
        self._runtime = runtime
        self._activation = activation
        self._workshop = workshop
        self.notices = tuple(workshop.notices)

    @classmethod
    def load(
        cls,
        name_or_path: str | os.PathLike[str],
        *,
        runtime: RuntimeName = "auto",
        device: str | None = None,
        offline: bool | None = None,
    ) -> CrossEncoder:
        """Load a cross-encoder.

        The first time it is converted for OpenVINO, which takes some seconds and imports torch; the result is
        kept in the cache folder (`LIKEWISE_CACHE`).

        Args:
            name_or_path: A folder, or a hub id such as `cross-encoder/ms-marco-MiniLM-L6-v2`.
            runtime: `"auto"` is OpenVINO on the CPU, and torch on other devices and for models that OpenVINO
                does not run with the same scores. The others are orders.
            device: A torch device such as `"cuda"`, or `"auto"` for the fastest there is; None for the CPU.
            offline: Never ask the hub; None as `HF_HUB_OFFLINE` says.

        Raises:
            EncoderNotFound: There is no such model.
            EncoderError: It is no cross-encoder with one label, incomplete, damaged, or cannot be run.
            UsageError: The arguments make no sense.
        """
        if runtime not in ("auto", "openvino", "torch"):
            raise UsageError(f"expected runtime auto, openvino or torch, found {runtime!r}")
        if runtime == "openvino" and device not in (None, "cpu"):
            raise UsageError(
                f"the openvino runtime computes on the CPU, not on {device}", remedy="use runtime torch"
            )
        location = resolve(name_or_path, offline=offline)
        spec = read_spec(location.directory, location.name)
        activation = _check(spec)
        identity = fingerprint(spec, weights_sha256=location.weights_sha256)
        workshop = Workshop(cache_root() / "cross-encoders" / identity[:32])
        pairs = _open_tokenizer(spec, workshop)
        started = _start(spec, pairs, workshop, runtime, device)
        return cls(spec, pairs, started, activation, workshop)

    @property
    def name(self) -> str:
        """Hub id, or path of the folder."""
        return self._spec.name

    @property
    def max_tokens(self) -> int:
        """Tokens of a pair, special tokens included; what is longer loses the end of its longer text."""
        return self._spec.max_tokens

    @property
    def runtime(self) -> str:
        """What computes the scores, such as "openvino cpu float32"."""
        return self._runtime.name

    def scores(self, query: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """How well each passage answers the query.

        Args:
            query: Any text.
            passages: Any number of texts of any length.

        Returns:
            float32 of shape (n,), higher is better: what the model's own activation makes of its logit, which
            is a number in [0, 1] for most (sigmoid) and any number for some.

        Raises:
            UsageError: `passages` is a single string or holds something else than strings.
        """
        texts = as_texts(passages)
        [asked] = as_texts([query])
        found = np.empty(len(texts), dtype=np.float32)
        rows = self._pairs.rows(asked, texts)
        for positions in plan_batches([len(row.ids) for row in rows], budget=self._runtime.batch_tokens):
            batch = self._pairs.pad([rows[position] for position in positions])
            found[positions] = self._runtime.run(cast(Batch, batch))[:, 0]
        return _sigmoid(found) if self._activation == "sigmoid" else found

    def __repr__(self) -> str:
        return f"CrossEncoder({self.name!r}, runtime={self.runtime!r})"


class _PairRow(NamedTuple):
    ids: list[int]
    segments: list[int]


class _PairTokenizer:
    """Pairs to token ids, cut as transformers cuts them: the longer text loses its end."""

    def __init__(self, tokenizer: Tokenizer, *, max_tokens: int, pad_id: int, keep_end: bool) -> None:
        tokenizer.enable_truncation(
            max_tokens, strategy="longest_first", direction="left" if keep_end else "right"
        )
        self._tokenizer = tokenizer
        self._pad_id = pad_id

    def rows(self, query: str, passages: Sequence[str]) -> list[_PairRow]:
        pairs = [(query, passage) for passage in passages]
        return [_PairRow(each.ids, each.type_ids) for each in self._tokenizer.encode_batch(pairs)]

    def pad(self, rows: Sequence[_PairRow]) -> PairBatch:
        width = max(1, *(len(row.ids) for row in rows))
        ids = np.full((len(rows), width), self._pad_id, dtype=np.int64)
        mask, segments = np.zeros_like(ids), np.zeros_like(ids)
        for place, row in enumerate(rows):
            ids[place, : len(row.ids)] = row.ids
            mask[place, : len(row.ids)] = 1
            segments[place, : len(row.ids)] = row.segments
        return PairBatch(ids, mask, segments)

    def probes(self) -> list[PairBatch]:
        """Inputs on which runtimes are compared: padded and not, short and as long as the model takes."""
        rows = [self.rows(query, [passage])[0] for query, passage in _PROBES]
        return [self.pad(rows), *(self.pad([row]) for row in rows)]


def _check(spec: ModelSpec) -> Activation:
    """Refuse what is no cross-encoder with one label; returns what becomes of its logits."""
    config = read_config(spec.transformer / "config.json", required=True)
    architecture = str((config.get("architectures") or [""])[0])
    if not architecture.endswith("ForSequenceClassification"):
        raise EncoderError(
            f"expected a cross-encoder (a sequence classifier with one label), found {spec.name}: "
            f"{architecture or 'an unknown architecture'}",
            remedy="choose a model such as cross-encoder/ms-marco-MiniLM-L6-v2 or BAAI/bge-reranker-base",
        )
    labels = config.get("num_labels") or len(config.get("id2label") or {"0": "", "1": ""})
    if labels != 1:
        raise EncoderError(
            f"expected a cross-encoder with one label, found {labels} labels in {spec.name}",
            remedy="choose a model that was trained to rank",
        )
    named = (config.get("sentence_transformers") or {}).get("activation_fn") or config.get(
        "sbert_ce_default_activation_function"
    )
    kind = str(named or "Sigmoid").rsplit(".", 1)[-1].lower()
    if kind not in ("sigmoid", "identity"):
        raise EncoderError(
            f"expected the activation Sigmoid or Identity in {spec.name}, found {named}",
            remedy="choose another cross-encoder",
        )
    return cast(Activation, kind)


def _open_tokenizer(spec: ModelSpec, workshop: Workshop) -> _PairTokenizer:
    try:
        tokenizer, settings = read_tokenizer(workshop.kept)
    except EncoderError:
        folder = workshop.writable("")
        prepare_tokenizer(spec, folder)
        tokenizer, settings = read_tokenizer(folder)
    return _PairTokenizer(
        tokenizer, max_tokens=spec.max_tokens, pad_id=settings.pad_id, keep_end=settings.keep_end
    )


def _start(
    spec: ModelSpec, pairs: _PairTokenizer, workshop: Workshop, runtime: RuntimeName, device: str | None
) -> Runtime:
    from likewise.embedder.runtimes.openvino import Refused

    if runtime != "torch" and device in (None, "cpu"):

        def make(home: Path) -> Runtime:
            from likewise.embedder.runtimes.pairs import convert_pairs

            return convert_pairs(spec, pairs.probes(), home)

        try:
            return open_or_make(workshop, make)
        except Refused as refusal:
            if runtime == "openvino":
                raise EncoderError(
                    f"the openvino runtime cannot run {spec.name}: {refusal}",
                    remedy="use runtime auto or torch",
                ) from refusal
            workshop.notices.append(f"{spec.name} runs in torch, which is slower: {refusal}")
    from likewise.embedder.devices import torch_device
    from likewise.embedder.runtimes.pairs import TorchPairRuntime, load_pair_model

    return TorchPairRuntime(load_pair_model(spec), torch_device(device))


def _sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """1 / (1 + e^-x), without overflow."""
    small = np.exp(-np.abs(logits))
    return np.where(logits >= 0, 1 / (1 + small), small / (1 + small)).astype(np.float32)
