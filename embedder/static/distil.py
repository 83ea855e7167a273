"""From a teacher, and perhaps a corpus, to a static encoder: all parts put together.

Without a corpus, each token goes through the teacher alone, and weights follow Zipf's law. With one, tokens
are weighed by how often they stand in it, and their vectors are fitted to the teacher's of its texts. What
the teacher said is kept in the cache folder, so that another run, or one that goes on, need not ask again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from likewise.embedder import load_encoder
from likewise.embedder.encoder import Encoder
from likewise.embedder.events import Listener
from likewise.embedder.heads.vector_cache import VectorCache
from likewise.embedder.logs import CsvLog, JsonLog
from likewise.embedder.report import ModelCard, hardware
from likewise.embedder.runtimes.base import unit_rows
from likewise.embedder.static.refine import (
    ShuffledTexts,
    StaticDistillation,
    TextVectors,
    TokenTable,
    agreement,
)
from likewise.embedder.static.saving import save_static
from likewise.embedder.static.table import (
    Floats,
    counted_shares,
    principal_components,
    sif_weights,
    without_common_direction,
    zipf_shares,
)
from likewise.embedder.static.texts import sample_texts
from likewise.embedder.static.tokens import StaticTokens, count_tokens, static_tokens
from likewise.embedder.training import TrainingResult, train
from likewise.embedder.training_settings import TrainingSettings
from likewise.errors import DataError, UsageError

Progress = Callable[[str, int, int], None]
"""Told what the teacher is asked about, how much of it is done, and out of how many."""

# Zipf's law knows less than a count does, so it is followed less far: the constant of SIF by shares it gives.
_SIF_ZIPF, _SIF_COUNTED = 1e-4, 3e-3
# The most texts that are held out to see how well the student agrees with its teacher.
_MOST_HELD_OUT = 1_000
# Batches of an epoch, as long as batches do not get too small for it.
_BATCHES, _SMALLEST_BATCH = 40, 16
# Fewer texts than this many times the dimensions say less about directions than the tokens do.
_TEXTS_PER_DIMENSION = 4


@dataclass(frozen=True, kw_only=True)
class StaticSettings:
    """How a static encoder is made.

    Attributes:
        dimension: Length of its vectors; that of the teacher if that is shorter.
        words: Whole words of the corpus that get a vector of their own, at most.
        texts: Passages and sentences of the corpus that the teacher is asked about, at most.
        training: Budget and learning rate of the fit to these texts; None leaves it out.
        batch_size: Texts in a batch of it, fewer where the corpus is small.
        contrast: Weight of its contrastive term.
        held_out: Share of the texts to measure the agreement with the teacher on.
        seed: Of the choice of texts and of the fit.
        offline: Never ask the hub for the teacher.
    """

    dimension: int = 256
    words: int = 0
    texts: int = 20_000
    training: TrainingSettings | None = None
    batch_size: int = 128
    contrast: float = 0.1
    held_out: float = 0.05
    seed: int = 0
    offline: bool | None = None

    def __post_init__(self) -> None:
        if self.dimension < 1 or self.words < 0 or self.texts < 2 or self.batch_size < 2:
            raise UsageError(
                "expected a dimension of at least 1, words of at least 0, and at least 2 texts, in all and "
                f"in a batch, found {self.dimension}, {self.words}, {self.texts} and {self.batch_size}"
            )
        if not 0 < self.held_out < 1 or self.contrast < 0:
            raise UsageError(
                f"expected a held-out share in (0, 1) and a contrast of at least 0, found {self.held_out} "
                f"and {self.contrast}"
            )


@dataclass(frozen=True)
class StaticResult:
    """What came of it.

    Attributes:
        folder: The model; it is not there yet after an interruption.
        status: "finished", or "interrupted" if the fit was.
        tokens: Tokens with a vector.
        words: Whole words among them.
        dimension: Length of a vector.
        texts: Texts of the corpus that the teacher was asked about.
        agreement: Mean cosine with the teacher on held-out texts, before the fit and after it; None without
            a corpus.
        training: How the fit went; None without one.
    """

    folder: Path
    status: str
    tokens: int
    words: int
    dimension: int
    texts: int
    agreement: tuple[float, float] | None = None
    training: TrainingResult | None = field(default=None)


def distil_static(
    teacher: str | None,
    folder: Path,
    settings: StaticSettings,
    *,
    texts: Iterable[str] = (),
    listeners: Sequence[Listener] = (),
    progress: Progress | None = None,
) -> StaticResult:
    """Make a static encoder.

    Args:
        teacher: Name of an encoder with a tokenizer; None for the default one.
        folder: Where the model goes.
        settings: How.
        texts: Of the corpus, read once; see `texts.passages_and_sentences`.
        listeners: Called with the events of the fit.
        progress: See `Progress`.

    Raises:
        EncoderNotFound: There is no such teacher.
        UsageError: The teacher has no layers to learn from, or words are wanted that cannot be had.
        DataError: The corpus holds fewer than two texts, or none that has a token.
        TrainingError: The fit diverged or could not be saved.

    Example:
        See `likewise distill --static`.
    """
    master = _load(teacher, settings)
    chosen = sample_texts(texts, settings.texts, seed=settings.seed)
    tokens = static_tokens(master.tokenizer, chosen, words=settings.words)
    ask = _Teacher(master, progress)
    spelt = ask.about_tokens(tokens)
    kept = min(settings.dimension, master.dimension)
    known = [number for number, spelling in enumerate(tokens.spelling) if spelling]
    table = np.zeros((len(tokens), kept), dtype=np.float32)
    result = StaticResult(folder, "finished", len(known), tokens.words, kept, len(chosen))
    if not chosen:
        project = principal_components(spelt, kept)
        weights = sif_weights(zipf_shares(len(tokens)), _SIF_ZIPF)
        table[known] = project(spelt) * weights[known, None]
    else:
        rows = tokens.rows(chosen, master.passage_tokens)
        pairs = [(row, text) for row, text in zip(rows, chosen, strict=True) if len(row)]
        if len(pairs) < 2:
            raise DataError(f"expected at least two texts with tokens, found {len(pairs)}")
        rows = [row for row, _ in pairs]
        said = ask.about_texts([text for _, text in pairs])
        enough = len(said) >= _TEXTS_PER_DIMENSION * kept
        project = principal_components(said if enough else spelt, kept)
        weights = sif_weights(counted_shares(count_tokens(rows, len(tokens))), _SIF_COUNTED)
        # Each kind is centred by its own mean: a token alone is no text.
        table[known] = ((spelt - spelt.mean(axis=0)) @ project.components) * weights[known, None]
        table = without_common_direction(table, np.stack([table[row].mean(axis=0) for row in rows]))
        targets = unit_rows((said - said.mean(axis=0)) @ project.components)
        table, result = _fitted(table, TextVectors(rows, targets), settings, result, listeners, master)
        if result.status == "interrupted":
            return result
    save_static(tokens.tokenizer, table, folder, max_tokens=master.max_tokens)
    _write_card(result, master, settings)
    return result


def _load(teacher: str | None, settings: StaticSettings) -> Encoder:
    if teacher is not None and teacher.split(":")[0] == "hash":
        encoder: object = load_encoder(teacher)
    else:
        encoder = Encoder.load(teacher, offline=settings.offline)
    if not isinstance(encoder, Encoder) or encoder.runtime.startswith("static"):
        raise UsageError(f"{teacher} is no encoder of several layers: there is nothing to distil from it")
    return encoder


class _Teacher:
    """Answers of a teacher, kept in the cache folder."""

    def __init__(self, encoder: Encoder, progress: Progress | None) -> None:
        self._encoder, self._progress = encoder, progress

    def about_tokens(self, tokens: StaticTokens) -> Floats:
        """Vectors of the tokens that mean something, in order."""
        spellings = [" ".join(map(str, spelling)) for spelling in tokens.spelling if spelling]
        return self._cache("tokens").vectors(
            spellings,
            lambda block: self._encoder.encode_tokens([list(map(int, text.split())) for text in block]),
            progress=self._told("tokens"),
        )

    def about_texts(self, texts: Sequence[str]) -> Floats:
        """Vectors of texts, in order."""
        return self._cache("texts").vectors(
            texts, self._encoder.encode_passages, progress=self._told("texts")
        )

    def _cache(self, kind: str) -> VectorCache:
        return VectorCache(f"{kind}-{self._encoder.fingerprint}"[:32], self._encoder.dimension)

    def _told(self, kind: str) -> Callable[[int, int], None] | None:
        tell = self._progress
        return (
            None
            if tell is None
            else lambda done, total: tell(f"asking the teacher about {kind}", done, total)
        )


def _fitted(
    table: Floats,
    texts: TextVectors,
    settings: StaticSettings,
    result: StaticResult,
    listeners: Sequence[Listener],
    teacher: Encoder,
) -> tuple[Floats, StaticResult]:
    """The table fitted to the texts, and what came of it."""
    apart = max(1, min(_MOST_HELD_OUT, round(settings.held_out * len(texts))))
    held_out = TextVectors(texts.rows[:apart], texts.targets[:apart])  # texts stand in an order of chance
    learned = TextVectors(texts.rows[apart:], texts.targets[apart:])
    before = agreement(table, held_out)
    if settings.training is None:
        return table, replace(result, agreement=(before, before))
    model = TokenTable(table)
    # A small corpus gets smaller batches, so that ten passes over it are steps enough.
    size = min(settings.batch_size, max(_SMALLEST_BATCH, len(learned) // _BATCHES))
    batches = ShuffledTexts(learned, size=size, seed=settings.seed)
    training = replace(
        settings.training,
        seed=settings.seed,
        precision="float32",  # nothing but a sum of rows is computed
        weight_decay=0.0,  # tokens that are seen seldom shall keep their vectors
        evaluate_every=settings.training.evaluate_every or batches.length(0),
        watch="agreement",
        watch_mode="max",
    )
    work = result.folder / "training"
    done = train(
        model,
        StaticDistillation(learned, contrast=settings.contrast),
        batches,
        training,
        folder=work / "checkpoints",
        evaluate=lambda _: {"agreement": agreement(model.table(), held_out)},
        listeners=[CsvLog(work / "train.csv"), JsonLog(work / "log.jsonl"), *listeners],
        identity={"teacher": teacher.fingerprint, "contrast": settings.contrast},
    )
    status = "interrupted" if done.status == "interrupted" else "finished"
    fitted = model.table()
    after = agreement(fitted, held_out)
    if after < before:  # the fit is never worth less than what it started from
        fitted, after = table, before
    return fitted, replace(result, status=status, agreement=(before, after), training=done)


def _write_card(result: StaticResult, teacher: Encoder, settings: StaticSettings) -> None:
    found = {}
    if result.agreement is not None:
        found = {
            "cosine with the teacher, before the fit": result.agreement[0],
            "cosine with the teacher, after it": result.agreement[1],
        }
    training = result.training
    card = ModelCard(
        title=result.folder.resolve().name,
        summary=(
            f"A static sentence encoder, distilled from {teacher.name}: one vector for each token, a text is "
            "their mean. Its vectors have unit length and are compared by cosine. It is far faster than its "
            "teacher and knows less: measure both on your own documents with `likewise evaluate`."
        ),
        data={"tokens": result.tokens, "whole words among them": result.words, "texts": result.texts},
        settings={
            "teacher": teacher.name,
            "dimension": result.dimension,
            "token limit": teacher.max_tokens,
            "weights of tokens": "SIF by counts of the corpus" if result.texts else "SIF by Zipf's law",
            **(
                {}
                if training is None
                else {
                    "steps of the fit": training.step,
                    "epochs": f"{training.epochs:.2f}",
                    "seed": settings.seed,
                }
            ),
            **hardware(),
        },
        results=found,
        split="held-out texts of the corpus",
        tags=("sentence-transformers", "sentence-similarity", "static-embeddings"),
        library="sentence-transformers",
    )
    (result.folder / "README.md").write_text(card.markdown(), "utf-8")
    summary = {
        "status": result.status,
        "tokens": result.tokens,
        "words": result.words,
        "dimension": result.dimension,
        "texts": result.texts,
        "agreement": result.agreement,
    }
    (result.folder / "metrics.json").write_text(json.dumps(summary, indent=1), "utf-8")
