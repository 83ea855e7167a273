"""What a person sees of an answer: where it stands, how it begins, and a link to the file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.retrieval.evaluation.evaluate import covers
from likewise.retrieval.evaluation.judgements import Place

if TYPE_CHECKING:
    from likewise.index.records import StoredPassage
    from likewise.index.view import IndexView

EXCERPT = 240
"""Characters of a passage that are shown."""

_PASSAGE = "#passage="
# Lines under titles and around tables: they would fill an excerpt.
_RULES = re.compile(r"([=~^*#_+-])\1{3,}")


@dataclass(frozen=True)
class Shown:
    """An answer for people.

    Attributes:
        label: Path, and lines or page where they are known.
        title: Heading or title above it, or "".
        text: How the passage begins, or "".
        link: Address of the file on this machine, or "".
    """

    label: str
    title: str = ""
    text: str = ""
    link: str = ""


Show = Callable[[str], Shown]


def show_from(view: IndexView, *, base: Path | None = None) -> Show:
    """How answers look that come from an index.

    Args:
        view: The index; it must stay open.
        base: Folder that keys are relative to; None for documents that are not files.
    """

    def show(answer: str) -> Shown:
        key, found, number = answer.rpartition(_PASSAGE)
        place = Place(key) if found and number.isdecimal() else Place.of(answer)
        passages = view.document_passages(place.key)
        if place.unit:
            passages = [p for p in passages if covers(place, p.passage.lines, p.passage.page)]
        elif found and number.isdecimal():
            passages = [p for p in passages if p.id == int(number)]
        link = "" if base is None else file_link(base / place.key)
        if not passages:
            return Shown(str(place), link=link)
        first = passages[0]
        whole = not (place.unit or found)
        return Shown(_label(first, whole=whole), _heading(first, whole=whole), _begin(first), link)

    return show


def show_plainly(answer: str) -> Shown:
    """How an answer looks of which nothing but its id is known."""
    return Shown(answer)


def file_link(path: Path) -> str:
    """A `file:` address, or "" if there is no such file."""
    try:
        return path.absolute().as_uri() if path.is_file() else ""
    except (OSError, ValueError):
        return ""


def _label(stored: StoredPassage, *, whole: bool) -> str:
    passage = stored.passage
    if whole:
        return stored.key
    if passage.page is not None:
        return f"{stored.key}, page {passage.page}"
    first, last = passage.lines
    return f"{stored.key}:{first}" if first == last else f"{stored.key}:{first}-{last}"


def _heading(stored: StoredPassage, *, whole: bool) -> str:
    return stored.title if whole else " > ".join(stored.passage.headings) or stored.title


def _begin(stored: StoredPassage) -> str:
    text = " ".join(_RULES.sub(" ", stored.passage.text).split())
    return text if len(text) <= EXCERPT else text[:EXCERPT].rstrip() + "…"
