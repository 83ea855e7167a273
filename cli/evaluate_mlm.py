"""`likewise evaluate-mlm`: how well a model fills masks on a text."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli.options import DEVICE, LENGTH, OFFLINE
from likewise.cli.output import Format, output_options, write, write_json, write_jsonl
from likewise.cli.training import quiet
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.embedder.mlm_evaluation import Estimate
    from likewise.index.records import Json

EPILOG = """\b
Examples:
  likewise evaluate-mlm model ~/other-texts
  likewise evaluate-mlm model ~/handbook --held-out 0.02

Texts that the model was trained on flatter it: give others, or the share that its training held out.
"""


@click.command("evaluate-mlm", short_help="Measure how well a model fills masks.", epilog=EPILOG)
@click.argument("model", metavar="MODEL")
@click.argument("corpus", nargs=-1, required=True, metavar="CORPUS...", type=click.Path(path_type=Path))
@click.option(
    "--held-out",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="SHARE",
    help="Use only the documents that training with this share held out.",
)
@LENGTH
@click.option("--batches", type=click.IntRange(min=1), metavar="N", help="Most batches. [default: all]")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Of the masks.")
@DEVICE
@OFFLINE
@output_options
def evaluate_mlm(
    model: str,
    corpus: tuple[Path, ...],
    held_out: float | None,
    length: int,
    batches: int | None,
    seed: int,
    device: str,
    offline: bool,
    format: Format,
) -> None:
    """Measure masked accuracy and perplexity of MODEL on CORPUS, with 95% intervals."""
    from likewise.cli.corpus import CorpusFiles
    from likewise.embedder.corpus_build import build_corpus
    from likewise.embedder.devices import torch_device
    from likewise.embedder.mlm_evaluation import evaluate_mlm as measure
    from likewise.embedder.packing import CorpusBatches
    from likewise.embedder.sequences import Frame
    from likewise.embedder.starting_point import from_encoder, load_tokenizer

    asked = True if offline else None
    files = CorpusFiles(corpus)
    with quiet(), tempfile.TemporaryDirectory() as folder:
        tokenizer = load_tokenizer(model, offline=asked)
        start = from_encoder(model, tokenizer, seed=seed, offline=asked)
        if length > start.positions:
            raise UsageError(f"expected at most {start.positions} tokens, found a length of {length}")
        built = build_corpus(files.documents(), tokenizer, Path(folder) / "corpus", held_out=held_out or 0.0)
        sequences = CorpusBatches(
            built,
            Frame.of(tokenizer),
            length=length,
            tokens_per_batch=max(2048, length),
            held_out=held_out is not None,
        )
        start.model.to(torch_device(device))
        found = measure(start.model, start.objective, sequences, limit=batches)
        del sequences, built  # unmap the files before their folder goes
    if format is Format.TEXT:
        write(f"masked accuracy  {_text(found.masked_accuracy)}")
        write(f"perplexity       {_text(found.perplexity)}")
        write(f"loss             {_text(found.loss)}")
        measured = math.isfinite(found.loss.high)
        intervals = "intervals of 95%, by batch" if measured else "one batch only, hence no interval"
        write(f"over {found.targets:,} masked tokens; {intervals}")
        return
    value: dict[str, Json] = {
        "version": 1,
        "model": model,
        "targets": found.targets,
        "masked_accuracy": _json(found.masked_accuracy),
        "perplexity": _json(found.perplexity),
        "loss": _json(found.loss),
    }
    if format is Format.JSON:
        write_json(value)
    else:
        write_jsonl([value])


def _text(estimate: Estimate) -> str:
    interval = f"  [{estimate.low:.4g}, {estimate.high:.4g}]" if math.isfinite(estimate.high) else ""
    return f"{estimate.value:.4g}{interval}"


def _json(estimate: Estimate) -> dict[str, Json]:
    known = math.isfinite(estimate.high)
    return {
        "value": estimate.value,
        "low": estimate.low if known else None,
        "high": estimate.high if known else None,
    }
