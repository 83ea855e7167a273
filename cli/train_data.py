"""What `likewise train` is given, as settings: data sets, columns, prompts, collections to rank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.cli.output import note
from likewise.errors import UsageError

if TYPE_CHECKING:
    from likewise.embedder.prompts import Prompts
    from likewise.embedder.siamese.evaluators import Ranking
    from likewise.embedder.siamese.settings import TrainingData

LOSSES = (
    "ranking",
    "cosent",
    "angle",
    "cosine",
    "softmax",
    "contrastive",
    "online-contrastive",
    "triplet",
    "margin-mse",
    "simcse",
    "tsdae",
    "distillation",
    "translation",
    "crosslingual",
)


def data_sets(
    data: Sequence[str], held_out: Sequence[str], options: dict[str, Any]
) -> tuple[list[TrainingData], list[TrainingData]]:
    """The data sets to train on and to be measured by.

    Args:
        data: `[[FACTOR*]LOSS=]DATA[#SPLIT][@WEIGHT]` each.
        held_out: The same for evaluation.
        options: Of the command.

    Raises:
        UsageError: Something is not of its form, or is said of a data set that is not there.
    """
    sets = [_data_set(text, options) for text in data]
    apart = [_data_set(text, options) for text in held_out]
    known = {item.name for item in (*sets, *apart)}
    for option in ("columns", "column_prompts"):
        for item in options[option]:
            scope, _, _ = _assignment(item)
            if scope and scope not in known:
                raise UsageError(
                    f"{item!r} is about data called {scope}, and there are {', '.join(sorted(known))}"
                )
    return sets, apart


def _data_set(text: str, options: dict[str, Any]) -> TrainingData:
    from likewise.embedder.siamese.settings import TrainingData
    from likewise.embedder.siamese.tasks import LossSettings

    head, found, source = text.partition("=")
    number, _, loss = head.rpartition("*")
    factor = 1.0
    if not found or loss not in LOSSES:  # a path may hold an equals sign
        loss, source = options["loss"], text
    elif number:
        factor = _factor(number, text)
    weight = 1.0
    head, at, tail = source.rpartition("@")
    if at and _is_number(tail):
        source, weight = head, float(tail)
    split = "train"
    head, mark, tail = source.rpartition("#")
    if mark and not Path(source).exists():  # a path may hold this sign too
        source, split = head, tail
    item = TrainingData(source=source, loss=loss)
    return TrainingData(
        source=source,
        loss=loss,
        weight=weight,
        split=split,
        columns=_assigned(options["columns"], item.name),
        prompts=_assigned(options["column_prompts"], item.name),
        score_range=options["score_range"],
        settings=LossSettings(
            scale=options["scale"],
            margin=options["margin"],
            symmetric=options["symmetric"],
            metric=options["distance"],
            features=options["features"],
            deleted=options["deleted"],
            measure=options["measure"],
            dimensions=options["matryoshka"] or None,
            factor=factor,
        ),
    )


def _assigned(items: Sequence[str], name: str) -> dict[str, str]:
    """What is said of the columns of one data set; what names it counts more than what names none."""
    found = [_assignment(item) for item in items]
    general = {role: value for scope, role, value in found if not scope}
    return general | {role: value for scope, role, value in found if scope == name}


def _assignment(item: str) -> tuple[str, str, str]:
    """Data set, role and value of `[DATA:]ROLE=VALUE`.

    Example:
        >>> _assignment("faq:anchor=claim"), _assignment("positive=passage: ")
        (('faq', 'anchor', 'claim'), ('', 'positive', 'passage: '))
    """
    place, equals, value = item.partition("=")
    if not equals:
        raise UsageError(f"expected [DATA:]ROLE=..., found {item!r}", remedy="for example anchor=claim")
    scope, _, role = place.rpartition(":")
    return scope, role, value


def prompts_of(options: dict[str, Any]) -> Prompts | None:
    """The prompts of the trained model; None for those that the encoder has.

    Args:
        options: Of the command.
    """
    query, passage = options["query_prompt"], options["passage_prompt"]
    if query is None and passage is None:
        return None
    from likewise.embedder.prompts import Prompts
    from likewise.embedder.resolve import resolve
    from likewise.embedder.spec import read_spec

    location = resolve(options["encoder"], offline=True if options["offline"] else None)
    own = read_spec(location.directory, location.name).prompts
    return Prompts(own.query if query is None else query, own.passage if passage is None else passage)


def rankings_of(folders: Sequence[Path], *, split: str, most: int) -> list[Ranking]:
    """Collections to measure search quality on.

    Args:
        folders: In the form of BEIR.
        split: Which judgements to use.
        most: Documents to rank.

    Raises:
        DataError: A folder is malformed.
    """
    if not folders:
        return []
    from likewise.embedder.siamese.evaluators import Ranking
    from likewise.retrieval.evaluation.dense_ranking import DenseRanking

    found = []
    for folder in folders:
        ranking = DenseRanking(folder, split=split, documents=most)
        if ranking.documents < ranking.total:
            note(
                f"{ranking.name}: ranking {ranking.documents:,} of {ranking.total:,} documents, which is "
                "easier than ranking all; compare the figure with itself only"
            )
        found.append(Ranking(ranking.name, ranking.metric.name.lower(), ranking))
    return found


def _factor(number: str, text: str) -> float:
    if not _is_number(number):
        raise UsageError(
            f"expected a number in front of the loss in {text!r}, found {number!r}",
            remedy="for example 20*distillation=texts.txt",
        )
    return float(number)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
