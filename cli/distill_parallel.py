"""The body of `likewise distill --parallel`: a student learns its teacher's vectors in another language."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.cli.output import Format
from likewise.cli.train import finish_training
from likewise.cli.training import Watch, quiet, training_settings
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.embedder.siamese.pairs import PairData

_RATE, _RATE_OF_ROWS = 5e-5, 2e-3


def distill_parallel(
    teacher: str,
    files: tuple[Path, ...],
    output: Path,
    run: dict[str, Any],
    options: dict[str, Any],
    format: Format,
) -> None:
    """Grow a student's vocabulary and train it on parallel sentences."""
    from likewise.embedder.distributed import world
    from likewise.embedder.growth.parallel import GrowthSettings, distil_parallel
    from likewise.embedder.run_lock import only_run
    from likewise.embedder.segmenters import segmenter
    from likewise.embedder.siamese.settings import SiameseSettings
    from likewise.embedder.siamese.tasks import LossSettings

    if not files:
        raise UsageError(
            "expected FILE with parallel sentences, found none",
            remedy="likewise pairs FOLDER --kinds parallel -o FILE makes one from a folder",
        )
    rows_only = options["rows_only"]
    settings = SiameseSettings(
        training=training_settings(run, learning_rate=_RATE_OF_ROWS if rows_only else _RATE),
        encoder=options["student"],
        batch_size=options["batch_size"],
        dropout=options["dropout"],
        blend=options["blend"],
        keep_worse=options["keep_worse"],
        held_out=run["held_out"],
        device=run["device"],
        offline=True if run["offline"] else None,
        tensorboard=run["tensorboard"],
    )
    name = run["segmenter"]
    if options["words"] and name is None:
        raise UsageError("--words needs to know where words end", remedy="add --segmenter jieba")
    growth = GrowthSettings(
        words=options["words"], segment=segmenter(name) if name else None, rows_only=rows_only
    )
    watch = Watch()
    work = output / "training"
    with world() as processes, only_run(work, leads=processes.leads), quiet(), watch.bar:
        result = distil_parallel(
            teacher,
            read_files(files, options["columns"]),
            output,
            settings,
            growth,
            loss=LossSettings(hold=options["hold"]),
            listeners=[watch],
            world=processes,
        )
        leads = processes.leads
    if leads:
        finish_training(result, format)


def read_files(files: tuple[Path, ...], assignments: tuple[str, ...]) -> list[PairData]:
    """Parallel sentences of all files; `assignments` are ROLE=NAME, or ROLE= for what is to be ignored."""
    from likewise.embedder.growth.parallel import read_parallel

    columns = {}
    for item in assignments:
        role, equals, name = item.partition("=")
        if not equals or (name and role not in ("anchor", "positive")):
            raise UsageError(f"expected --column anchor=NAME or --column positive=NAME, found {item!r}")
        columns[role] = name
    return [read_parallel(path, columns=columns) for path in files]
