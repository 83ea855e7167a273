"""The body of `likewise distill --static`: a table of token vectors in place of a smaller network."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.output import Format, warn, write, write_json, write_jsonl
from likewise.cli.training import Watch, quiet, training_settings
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.embedder.static.distil import StaticResult
    from likewise.index.records import Json

_EPOCHS = 10.0


def distill_static(
    teacher: str,
    corpus: tuple[Path, ...],
    output: Path,
    run: dict[str, Any],
    options: dict[str, Any],
    format: Format,
) -> None:
    """Make a static encoder from a teacher and, if there is one, a corpus."""
    from likewise.cli.corpus import CorpusFiles
    from likewise.embedder.run_lock import only_run
    from likewise.embedder.static.distil import StaticSettings, distil_static
    from likewise.embedder.static.texts import passages_and_sentences

    if not corpus and (options["words"] or any(run[name] for name in ("steps", "epochs", "minutes"))):
        raise UsageError("words and a budget of training are for a CORPUS, and none is given")
    if not any(run[name] for name in ("steps", "epochs", "minutes")):
        run = {**run, "epochs": _EPOCHS}
    settings = StaticSettings(
        training=training_settings(run, learning_rate=3e-3),
        seed=run["seed"],
        held_out=run["held_out"] or 0.02,
        offline=True if run["offline"] else None,
        **options,
    )
    documents = CorpusFiles(corpus).texts() if corpus else ()
    texts = (text for document in documents for text in passages_and_sentences(document))
    watch = Watch()
    with (
        only_run(output / "training"),
        quiet(),
        watch.bar,
        closing(texts),
    ):  # an error must not leave files being read behind
        result = distil_static(
            teacher,
            output,
            settings,
            texts=texts,
            listeners=[watch],
            progress=lambda phase, done, total: watch.bar.show(phase, done=done, total=total),
        )
    if result.status == "interrupted":
        warn("stopped and saved; the same command goes on from there")
        raise click.exceptions.Exit(130)
    _print(result, format)


def _print(result: StaticResult, format: Format) -> None:
    if format is Format.TEXT:
        words = f", {result.words:,} of them whole words" if result.words else ""
        write(f"{result.folder}: {result.tokens:,} token vectors{words}, of {result.dimension} dimensions")
        if result.agreement is not None:
            before, after = result.agreement
            write(
                f"cosine with the teacher on held-out texts: {before:.4f} by tokens alone, "
                f"{after:.4f} fitted to {result.texts:,} texts"
            )
        return
    fields = asdict(result)
    fields.pop("training")
    value: dict[str, Json] = {
        "version": 1,
        **fields,
        "folder": str(result.folder),
        "agreement": None if result.agreement is None else list(result.agreement),
    }
    if format is Format.JSON:
        write_json(value)
    else:
        write_jsonl([value])
