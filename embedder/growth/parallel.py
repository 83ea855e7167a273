"""A student that learns the vectors of a teacher for texts in another language, from parallel sentences.

After Reimers and Gurevych 2020, "Making Monolingual Sentence Embeddings Multilingual using Knowledge
Distillation" (2004.09813): a translation shall get the vector that the teacher gives the original. Before
that, the student's vocabulary grows by what it lacks of the other language, since a token that is unknown
cannot be learned. The loss is `siamese/losses/crosslingual.py`, the loop that of all siamese training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from likewise.embedder.distributed import World
from likewise.embedder.events import Listener
from likewise.embedder.growth.directory import grow_directory, token_table
from likewise.embedder.growth.initial import initial_rows
from likewise.embedder.resolve import resolve
from likewise.embedder.segmenters import Segmenter
from likewise.embedder.siamese.pair_files import read_rows
from likewise.embedder.siamese.pairs import PairData, make_pairs
from likewise.embedder.siamese.settings import SiameseSettings, TrainingData
from likewise.embedder.siamese.tasks import LOSSES, LossSettings
from likewise.embedder.siamese.train import SiameseResult, train_siamese
from likewise.embedder.spec import read_spec
from likewise.embedder.tokenizer import TextTokenizer, prepare_tokenizer
from likewise.errors import DataError, UsageError


@dataclass(frozen=True, kw_only=True)
class GrowthSettings:
    """How the vocabulary of the student grows, and what is trained.

    Attributes:
        least: A character is added if so many texts have it.
        words: So many of the most frequent words are added too.
        segment: Finds words; None for none.
        rows_only: Train the new rows alone: vectors of texts without new tokens stay exactly as they are.
    """

    least: int = 2
    words: int = 0
    segment: Segmenter | None = None
    rows_only: bool = False

    def __post_init__(self) -> None:
        if self.least < 1 or self.words < 0:
            raise UsageError(
                f"expected at least 1 text and at least 0 words, found {self.least} and {self.words}"
            )
        if self.words and self.segment is None:
            raise UsageError("words can only be added with a segmenter that finds them")


def read_parallel(source: str | Path, *, columns: dict[str, str] | None = None) -> PairData:
    """Parallel sentences from a file.

    Args:
        source: CSV, TSV, JSONL or Parquet with the columns `anchor` (or `en`, or what `siamese/pairs.py`
            calls so), which the teacher understands, and `positive` (or `translation`). Rows with another
            `kind` than "parallel" are left out, so that the output of `likewise pairs` can be given as it is.
        columns: Role to column name, for other names.

    Raises:
        DataError: No rows, columns missing, or an empty text on either side.
    """
    rows = read_rows(source)
    if rows and "kind" in rows[0]:
        rows = [row for row in rows if row.get("kind") == "parallel"]
        if not rows:
            raise DataError(
                f"{source}: expected rows of the kind parallel, found none",
                remedy="a folder needs the same files in two languages: en/keys.md and zh/keys.md",
            )
    given = dict(columns or {})
    names = set(rows[0]) if rows else set()
    if "anchor" not in given and "en" in names and "anchor" not in names:
        given["anchor"] = "en"
        others = [name for name in rows[0] if name != "en" and isinstance(rows[0][name], str)]
        if "positive" not in given and "positive" not in names and len(others) == 1:
            given["positive"] = others[0]
    return make_pairs(rows, LOSSES["crosslingual"], name=str(source), columns=given)


def distil_parallel(
    teacher: str | None,
    data: Sequence[PairData],
    folder: Path,
    settings: SiameseSettings,
    growth: GrowthSettings,
    *,
    loss: LossSettings | None = None,
    listeners: Sequence[Listener] = (),
    world: World | None = None,
) -> SiameseResult:
    """Grow a student's vocabulary and train it on parallel sentences.

    Args:
        teacher: Encoder whose vectors are learned; None for the default encoder.
        data: From `read_parallel`.
        folder: Where the student goes, a Sentence Transformers directory.
        settings: Of the training. `encoder` is the student to begin with, the teacher if it is None.
        growth: Of the vocabulary.
        loss: Weights of the loss.
        listeners: Called with the events of the run.
        world: The processes that train together.

    Raises:
        DataError: Something is wrong with the data.
        EncoderError: The student's files are of a kind that cannot grow, or its body none of the BERT family
            though rows alone shall be trained.
        UsageError: Rows alone shall be trained, but there are no new ones.
    """
    start = resolve(settings.encoder or teacher, offline=settings.offline)
    grown = folder / "training" / "grown"
    groups = grow_for(start.directory, grown, data, growth)
    if growth.rows_only and not groups:
        raise UsageError(
            "the student's vocabulary lacks nothing of these texts, so there are no new rows to train",
            remedy="train everything: leave --rows-only out",
        )
    return train_siamese(
        [TrainingData(source=pairs, loss="crosslingual", settings=loss or LossSettings()) for pairs in data],
        folder,
        replace(
            settings,
            encoder=str(grown) if groups else str(start.directory),
            teacher=teacher or resolve(None, offline=settings.offline).name,
            rows=tuple((number,) for number in groups) if growth.rows_only else None,
        ),
        listeners=listeners,
        world=world,
    )


def grow_for(source: Path, target: Path, data: Sequence[PairData], growth: GrowthSettings) -> list[int]:
    """Write a copy of an encoder that knows the characters and words of the translations.

    Args:
        source: A Sentence Transformers directory or a plain checkpoint.
        target: Created; nothing is written if nothing is missing.
        data: Parallel sentences.
        growth: What to add.

    Returns:
        Ids of the new tokens.
    """
    originals = [text for pairs in data for text in pairs.columns["anchor"]]
    translations = [text for pairs in data for text in pairs.columns["positive"]]
    before = _tokenizer(source, target.parent / "before")
    tokens = new_tokens(translations, before, growth)
    if not tokens:
        return []
    table = token_table(source)
    ids = grow_directory(source, target, tokens, np.zeros((len(tokens), table.shape[1]), np.float32))
    after = _tokenizer(target, target.parent / "after")
    number = {token_id: at for at, token_id in enumerate(ids.values())}
    # Twice: with words as tokens, and spelt out, since their characters must have a meaning of their own.
    spelt = [" ".join(text) for text in translations] if growth.words else []
    rows = initial_rows(
        [[number[i] for i in row.ids if i in number] for row in after.rows([*translations, *spelt])],
        [_inner(row.ids, before) for row in before.rows(originals * (2 if spelt else 1))],
        table,
        len(tokens),
    )
    grow_directory(source, target, tokens, rows)
    return list(ids.values())


def new_tokens(texts: Sequence[str], tokenizer: TextTokenizer, growth: GrowthSettings) -> list[str]:
    """Characters that a tokenizer does not know, and the most frequent words that are not one token.

    Args:
        texts: In the new language.
        tokenizer: Of the student.
        growth: How many of them.

    Returns:
        The most frequent first, characters before words.
    """
    characters = Counter(c for text in texts for c in set(text) if not (c.isspace() or c.isascii()))
    # Ties in the order of the code points, so that the same texts give the same ids.
    frequent = sorted(
        (c for c, count in characters.items() if count >= growth.least), key=lambda c: (-characters[c], c)
    )
    unknown = tokenizer.unknown_share(frequent)
    found = [c for c, share in zip(frequent, unknown.tolist(), strict=True) if share]
    if growth.segment is None or not growth.words:
        return found
    words = Counter(
        word
        for text in texts
        for word in growth.segment(text)
        if 2 <= len(word) <= 4 and word.isalpha() and not word.isascii()
    )
    known = {
        word for word, _ in words.most_common() if tokenizer.count(word) == 1 and not _spelt(word, tokenizer)
    }
    chosen = [w for w, count in words.most_common() if count >= growth.least and w not in known]
    return [*found, *chosen[: growth.words]]


def _spelt(word: str, tokenizer: TextTokenizer) -> bool:
    return bool(tokenizer.unknown_share([word])[0])


def _inner(ids: Sequence[int], tokenizer: TextTokenizer) -> list[int]:
    """Without the special tokens around a text."""
    before, after = tokenizer.frame
    return list(ids[before : len(ids) - after])


def _tokenizer(directory: Path, work: Path) -> TextTokenizer:
    spec = read_spec(directory, str(directory))
    prepare_tokenizer(spec, work)
    return TextTokenizer.load(work, max_tokens=spec.max_tokens)
