"""Write to a catalogue, and ask what it holds."""

from __future__ import annotations

from pathlib import Path

from likewise.index.analyzer import analyze_query
from likewise.index.catalogue import Catalogue
from likewise.index.view import open_view


def ids_of(folder: Path, key: str) -> dict[str, int]:
    with open_view(folder) as view:
        return {stored.passage.text: stored.id for stored in view.document_passages(key)}


def apply(folder: Path, *changes) -> None:
    with Catalogue.open(folder, mode="write") as catalogue:
        catalogue.apply(changes)


def found(folder: Path, query: str) -> list[str]:
    """Texts that answer a query on the lexical side."""
    with open_view(folder) as view:
        ranking = view.lexical(analyze_query(query), 100)
        passages = view.passages(ranking.ids)
        return [passages[id_].passage.text for id_ in ranking.ids.tolist()]
