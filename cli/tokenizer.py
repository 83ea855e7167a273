"""`likewise tokenizer`: train a vocabulary, and see how one cuts a text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from likewise.cli.output import Format, columns, output_options, screen, write, write_json, write_jsonl
from likewise.cli.terminal import one_line
from likewise.cli.training import quiet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from likewise.embedder.corpus_build import SourceText
    from likewise.index.records import Json

EPILOG = """\b
Examples:
  likewise tokenizer train ~/handbook
  likewise tokenizer show "unaffable words"
"""
TRAIN_EPILOG = """\b
Examples:
  likewise tokenizer train ~/handbook --vocab-size 8000 -o tokenizer
  likewise tokenizer train corpus --algorithm unigram --cased --chinese join
  likewise tokenizer train corpus --algorithm bpe --chinese join --segmenter jieba
"""
SHOW_EPILOG = """\b
Examples:
  likewise tokenizer show "unaffable words" -t tokenizer
  likewise tokenizer show "中文分詞" --json
"""
# Documents of each language that the report measures: enough for two digits.
_MEASURED = 200


@click.group(short_help="Train a vocabulary, or see how one cuts a text.", epilog=EPILOG)
def tokenizer() -> None:
    """Subword vocabularies: trained on text, saved as a folder that AutoTokenizer loads."""


@tokenizer.command(short_help="Train a vocabulary on text.", epilog=TRAIN_EPILOG)
@click.argument("corpus", nargs=-1, required=True, metavar="CORPUS...", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("tokenizer"),
    show_default=True,
    metavar="DIR",
    help="Where the tokenizer goes.",
)
@click.option(
    "--algorithm",
    type=click.Choice(["wordpiece", "bpe", "unigram"]),
    default="wordpiece",
    show_default=True,
    help="BERT's WordPiece, byte-level BPE as in RoBERTa, or Unigram as in ALBERT, which takes minutes.",
)
@click.option(
    "--vocab-size",
    type=click.IntRange(min=1),
    default=30_522,
    show_default=True,
    metavar="N",
    help="Tokens in it.",
)
@click.option("--cased", is_flag=True, help="Keep upper case and, unless told otherwise, accents.")
@click.option(
    "--accents",
    type=click.Choice(["keep", "strip"]),
    help="Tell é from e, or do not. [default: strip, or keep with --cased]",
)
@click.option(
    "--special",
    multiple=True,
    metavar="TOKEN",
    help="A special token besides the usual five, such as <user>; may be repeated.",
)
@click.option(
    "--chinese",
    type=click.Choice(["split", "join"]),
    default="split",
    show_default=True,
    help="Make each Chinese character a token, or let frequent words become tokens.",
)
@click.option(
    "--segmenter",
    type=click.Choice(["jieba"]),
    help="Cut Chinese into words first, so that no token crosses borders of words: bpe, unigram.",
)
@output_options
def train(
    corpus: tuple[Path, ...],
    output: Path,
    algorithm: Literal["wordpiece", "bpe", "unigram"],
    vocab_size: int,
    cased: bool,
    accents: Literal["keep", "strip"] | None,
    special: tuple[str, ...],
    chinese: Literal["split", "join"],
    segmenter: Literal["jieba"] | None,
    format: Format,
) -> None:
    """Train a vocabulary on the text of files and folders, and report how it fits each language."""
    from likewise.cli.corpus import CorpusFiles
    from likewise.embedder.segmenters import segmenter as segmenter_named
    from likewise.embedder.vocabulary import VocabularySettings, train_vocabulary
    from likewise.embedder.vocabulary_fit import vocabulary_fit

    segment = segmenter_named(segmenter) if segmenter else None
    settings = VocabularySettings(
        algorithm=algorithm,
        size=vocab_size,
        lowercase=not cased,
        strip_accents=None if accents is None else accents == "strip",
        chinese=chinese,
        extra_tokens=special,
    )
    files = CorpusFiles(corpus)
    with quiet():
        trained = train_vocabulary(files.texts(), settings, segment=segment)
        trained.save_pretrained(output)
    samples = _by_language(files.documents())
    fits = [vocabulary_fit(trained, texts, language=language) for language, texts in sorted(samples.items())]
    if format is Format.TEXT:
        write(f"{output}: {len(trained):,} tokens")
        rows = [("language", "characters per token", "unknown tokens", "characters covered")]
        rows += [
            (fit.language, f"{fit.characters_per_token:.2f}", f"{fit.unknown_rate:.2%}", f"{fit.covered:.2%}")
            for fit in fits
        ]
        for line in columns(rows, width=screen().width):
            write(line)
        return
    value: dict[str, Json] = {
        "version": 1,
        "folder": str(output),
        "tokens": len(trained),
        "languages": [
            {
                "language": fit.language,
                "characters_per_token": round(fit.characters_per_token, 4),
                "unknown_rate": round(fit.unknown_rate, 6),
                "covered": round(fit.covered, 6),
            }
            for fit in fits
        ],
    }
    if format is Format.JSON:
        write_json(value)
    else:
        write_jsonl([value])


@tokenizer.command(short_help="See how a tokenizer cuts a text.", epilog=SHOW_EPILOG)
@click.argument("text", metavar="TEXT")
@click.option(
    "-t",
    "--tokenizer",
    "name",
    default="all-MiniLM-L6-v2-zh",
    show_default=True,
    metavar="DIR",
    help="Folder or model whose tokenizer to use.",
)
@output_options
def show(text: str, name: str, format: Format) -> None:
    """Print the tokens of TEXT with their ids."""
    from likewise.embedder.starting_point import load_tokenizer

    with quiet():
        loaded = load_tokenizer(name)
        ids = list(loaded(text)["input_ids"])
    tokens = [str(token) for token in loaded.convert_ids_to_tokens(ids)]
    pairs: list[dict[str, Json]] = [{"token": token, "id": at} for token, at in zip(tokens, ids, strict=True)]
    if format is Format.JSON:
        write_json({"version": 1, "text": text, "tokens": list(pairs)})
    elif format is Format.JSONL:
        write_jsonl({"version": 1, **pair} for pair in pairs)
    elif screen().is_terminal:
        for line in columns([(one_line(token), str(at)) for token, at in zip(tokens, ids, strict=True)]):
            write(line)
    else:
        write(" ".join(one_line(token) for token in tokens))


def _by_language(documents: Iterable[SourceText]) -> dict[str, list[str]]:
    from likewise.index.language import detect_language

    samples: dict[str, list[str]] = {}
    for document in documents:
        texts = samples.setdefault(detect_language(document.text) or "other", [])
        if len(texts) < _MEASURED:
            texts.append(document.text)
    return samples
