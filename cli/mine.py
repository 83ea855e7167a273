"""`likewise mine`: pairs to pairs with hard negatives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.options import mode_option
from likewise.cli.output import Format, note, output_options, write, write_json, write_jsonl
from likewise.cli.progress import Progress
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.index.records import Json
    from likewise.retrieval.hits import Mode

# Texts looked up for each wanted one, where those of the pair's documents fall away.
_DEEPER = 3

EPILOG = """\b
Examples:
  likewise mine questions.jsonl -o mined.jsonl
  likewise mine claims.csv --column anchor=claim --mode dense --negatives 3 -o mined.jsonl
  likewise mine questions.jsonl --cross-encoder BAAI/bge-reranker-base --margin 1 -o mined.jsonl
  likewise train mined.jsonl --loss ranking

Candidates are the positives of all rows and the texts of --corpus. A positive of the
same anchor, in whatever row, is never taken, nor is a text that holds it or is part of
it; nor is what scores nearly as high as it. Rows of `likewise pairs` say which document
they are from: nothing is taken from a document of the anchor, or a translation of it.
"""


@click.command(short_help="Find hard negatives for training pairs.", epilog=EPILOG)
@click.argument("data", metavar="DATA")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE",
    help="JSONL file for the rows with their negatives.",
)
@click.option("--encoder", metavar="NAME", help="Encoder that searches. [default: all-MiniLM-L6-v2-zh]")
@click.option(
    "--corpus",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="More candidates: the column text (or passage) of a file.",
)
@mode_option
@click.option(
    "--negatives", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Per row."
)
@click.option(
    "--ranks",
    nargs=2,
    type=int,
    default=(1, 30),
    show_default=True,
    metavar="FIRST LAST",
    help="Ranks that candidates come from.",
)
@click.option(
    "--margin", type=float, metavar="X", help="A negative scores lower than the positive by this much."
)
@click.option(
    "--relative-margin",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="A negative scores lower than the positive by this share of its score.",
)
@click.option("--cross-encoder", metavar="NAME", help="Model that scores for the margins instead of cosines.")
@click.option("--sample", is_flag=True, help="Draw from the candidates instead of taking the best.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Of the draw.")
@click.option("--column", "columns", multiple=True, metavar="ROLE=NAME", help="Name of a column; repeatable.")
@output_options
def mine(
    data: str,
    output: Path,
    encoder: str | None,
    corpus: Path | None,
    mode: Mode,
    negatives: int,
    ranks: tuple[int, int],
    margin: float | None,
    relative_margin: float,
    cross_encoder: str | None,
    sample: bool,
    seed: int,
    columns: tuple[str, ...],
    format: Format,
) -> None:
    """Find texts that are near an anchor but not its answer: what a ranking loss learns most from."""
    from likewise.embedder import load_encoder
    from likewise.embedder.cache import write_bytes
    from likewise.embedder.siamese.miner import MiningSettings
    from likewise.embedder.siamese.miner import mine as choose
    from likewise.embedder.siamese.pair_files import read_rows
    from likewise.embedder.siamese.pairs import make_pairs
    from likewise.embedder.siamese.tasks import LOSSES
    from likewise.retrieval.mining import OwnDocuments, cosine_score, reranker_score, text_search

    settings = MiningSettings(
        negatives=negatives,
        first=ranks[0],
        last=ranks[1],
        margin=margin,
        relative_margin=relative_margin or None,
        sample=sample,
        seed=seed,
    )
    named = dict(_role(item) for item in columns)
    records = read_rows(data if data.startswith("hub:") else Path(data))
    pairs = make_pairs(records, LOSSES["ranking"], name=data, columns=named)
    own = OwnDocuments(records)
    texts = list(pairs.columns["positive"])
    if corpus is not None:
        texts += [str(_text_of(row, corpus)) for row in read_rows(corpus)]
    model = load_encoder(encoder)
    if cross_encoder is None:
        score = cosine_score(model)
    else:
        from likewise.retrieval.rerank.cross_encoder import CrossEncoderReranker

        score = reranker_score(CrossEncoderReranker(cross_encoder))
    with Progress() as progress, text_search(texts, model, mode) as search:
        done = 0

        def watched(query: str, k: int) -> list[str]:
            nonlocal done
            progress.show("mining", done=done, total=len(pairs))
            done += 1
            deeper = _DEEPER * k if own else k
            return [text for text in search(query, deeper) if not own(query, text)][:k]

        found = choose(pairs, watched, settings, score=score)
        progress.clear()
    rows = zip(*found.data.columns.values(), strict=True)
    lines = [json.dumps(dict(zip(found.data.columns, row, strict=True)), ensure_ascii=False) for row in rows]
    write_bytes(output, ("\n".join(lines) + "\n").encode())
    if found.left_out:
        note(f"{found.left_out:,} rows are left out: not enough candidates passed")
    value: dict[str, Json] = {
        "version": 1,
        "file": str(output),
        "rows": len(found.data),
        "left_out": found.left_out,
        "positives": found.positives,
        "too_close": found.too_close,
    }
    if format is Format.JSON:
        write_json(value)
    elif format is Format.JSONL:
        write_jsonl([value])
    else:
        write(
            f"{output}: {len(found.data):,} rows; passed over {found.positives:,} positives and "
            f"{found.too_close:,} candidates too close to one"
        )


def _role(item: str) -> tuple[str, str]:
    role, equals, name = item.partition("=")
    if not equals:
        raise UsageError(f"expected --column ROLE=NAME, found {item!r}")
    return role, name


def _text_of(row: object, corpus: Path) -> object:
    assert isinstance(row, dict)
    for name in ("text", "passage", "positive", "answer"):
        if row.get(name):
            return row[name]
    raise UsageError(f"expected a column text or passage in every row of {corpus}, found {', '.join(row)}")
