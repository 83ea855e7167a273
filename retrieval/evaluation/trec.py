"""TREC files: runs (`query Q0 document rank score tag`) and qrels (`query 0 document grade`).

Columns are separated by white space there, so ids that hold some are written percent-encoded. Files written
here give the same figures in trec_eval as in a report.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from likewise.errors import DataError
from likewise.retrieval.evaluation.judgements import Qrels, TrecRun, open_text
from likewise.retrieval.evaluation.metrics import trec_order

_UNSAFE = re.compile(r"[\s%\x00-\x1f\x7f\ud800-\udfff]")


def load_run(path: Path) -> dict[str, dict[str, float]]:
    """Scores from a TREC run. The ranks are ignored, as trec_eval does.

    Raises:
        DataError: A row has another shape or is there twice, a score is no number, or there are no rows.
    """
    run: dict[str, dict[str, float]] = {}
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            fields = line.split()
            if not fields:
                continue
            if len(fields) != 6:
                raise DataError(
                    f"{path}:{number}: expected query Q0 document rank score tag (6 columns), "
                    f"found {len(fields)} columns"
                )
            query, _, document, _, score, _ = fields
            if document in run.setdefault(query, {}):
                raise DataError(f"{path}:{number}: document {document!r} is there twice for query {query!r}")
            run[query][document] = _number(score, f"{path}:{number}")
    if not run:
        raise DataError(f"{path}: no results found")
    return run


def run_lines(run: TrecRun, tag: str) -> Iterator[str]:
    """The lines of a run file, in trec_eval's own order.

    Example:
        >>> list(run_lines({"q": {"my notes.md": 0.5, "keys.md": 2.0}}, "hybrid"))
        ['q Q0 keys.md 1 2.0 hybrid', 'q Q0 my%20notes.md 2 0.5 hybrid']
    """
    name = token(tag)
    for query, scores in run.items():
        for rank, document in enumerate(trec_order(scores), start=1):
            yield f"{token(query)} Q0 {token(document)} {rank} {float(scores[document])!r} {name}"


def qrels_lines(qrels: Qrels) -> Iterator[str]:
    """The lines of a qrels file, with ids as `run_lines` writes them.

    Example:
        >>> list(qrels_lines({"q": {"keys.md#line=3": 1}}))
        ['q 0 keys.md#line=3 1']
    """
    for query, answers in qrels.items():
        for answer, grade in answers.items():
            yield f"{token(query)} 0 {token(answer)} {grade}"


def token(text: str) -> str:
    """An id without white space: that, and the percent sign, are percent-encoded as in an address."""
    return _UNSAFE.sub(
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass")), text
    )


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise DataError(f"{where}: expected a number as score, found {text!r}") from None
    if math.isnan(value):
        raise DataError(f"{where}: expected a number as score, found {text!r}")
    return value
