"""Names such as `hybrid:rrf+rerank`, and the searches that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Protocol, get_args

from likewise.errors import UsageError
from likewise.retrieval.fusion import DEFAULT_FUSION, fusion_rule
from likewise.retrieval.hits import Hit, Mode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from likewise.index.index import Index
    from likewise.retrieval.evaluation.evaluate import SearchFunction

DEFAULT_CONFIGURATIONS = "dense,lexical,hybrid"
RERANK = "rerank"
RERANKED = 50
"""How many candidates a cross-encoder reads for one question."""


class PairScorer(Protocol):
    """As much of a cross-encoder as reranking needs."""

    def scores(self, query: str, passages: Sequence[str]) -> Sequence[float] | NDArray[np.float32]:
        """How well each passage answers the query, higher is better."""
        ...


@dataclass(frozen=True)
class Configuration:
    """A way to search.

    Attributes:
        name: As reports show it.
        mode: Which sides rank.
        fusion: How hybrid search merges them.
        rerank: Whether a cross-encoder orders the candidates anew.
    """

    name: str
    mode: Mode
    fusion: str = DEFAULT_FUSION
    rerank: bool = False


def parse_configurations(text: str, *, fusions: Sequence[str] = ()) -> list[Configuration]:
    """The configurations that a list such as `dense,hybrid,hybrid:convex,hybrid+rerank` names.

    Args:
        text: `MODE[:FUSION][+rerank]`, separated by commas.
        fusions: Fusion rules for which every `hybrid` that names none stands.

    Raises:
        UsageError: A part is unknown, there twice, or does not go with the others.

    Example:
        >>> [each.name for each in parse_configurations("lexical,hybrid+rerank", fusions=["rrf", "convex"])]
        ['lexical', 'hybrid:rrf+rerank', 'hybrid:convex+rerank']
    """
    found: list[Configuration] = []
    for part in text.split(","):
        configuration, names_fusion = _parse(part.strip())
        if configuration.mode == "hybrid" and fusions and not names_fusion:
            found += [_with_fusion(configuration, rule) for rule in fusions]
        else:
            found.append(configuration)
    names = [configuration.name for configuration in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"the configuration {twice} is named twice")
    if fusions and not any(configuration.mode == "hybrid" for configuration in found):
        raise UsageError("a fusion rule is given, but no configuration is hybrid", remedy="--compare hybrid")
    return found


def _parse(part: str) -> tuple[Configuration, bool]:
    body, plus, extra = part.partition("+")
    mode, colon, rule = body.partition(":")
    if mode not in get_args(Mode) or (plus and extra != RERANK) or (colon and mode != "hybrid"):
        near = get_close_matches(part, [*get_args(Mode), "hybrid+rerank"], n=1)
        raise UsageError(
            f"expected MODE, hybrid:FUSION or MODE+rerank with a mode out of {', '.join(get_args(Mode))},"
            f" found {part!r}",
            remedy=near[0] if near else "hybrid",
        )
    configuration = Configuration(part, mode, rerank=bool(plus))  # type: ignore[arg-type]  # checked above
    if colon:
        fusion_rule(rule)
        return replace(configuration, fusion=rule), True
    return configuration, False


def _with_fusion(configuration: Configuration, rule: str) -> Configuration:
    fusion_rule(rule)
    suffix = "+" + RERANK if configuration.rerank else ""
    return replace(configuration, name=f"hybrid:{rule}{suffix}", fusion=rule)


def search_function(
    index: Index, configuration: Configuration, *, scorer: PairScorer | None = None, as_typed: bool = False
) -> SearchFunction:
    """The search that a configuration stands for, over an open index.

    Args:
        index: What is searched.
        configuration: How.
        scorer: The cross-encoder of configurations with `+rerank`.
        as_typed: Whether questions are in the query language, where quotation marks and the like mean
            something, as when a person types them; otherwise no character is an operator.

    Raises:
        UsageError: The configuration reranks and there is no scorer.
    """
    from likewise.retrieval.grammar import literal
    from likewise.retrieval.search import Retriever

    if configuration.rerank and scorer is None:
        raise UsageError(
            f"{configuration.name} needs a cross-encoder, and none is given",
            remedy="--reranker NAME, a model folder or a hub id",
        )
    retriever = Retriever(index, fusion=configuration.fusion)

    def search(query: str, k: int) -> Sequence[Hit]:
        asked = query if as_typed else literal(query)
        hits = retriever.search(asked, k=k, mode=configuration.mode)
        return reranked(query, hits, scorer) if configuration.rerank and scorer else hits

    return search


def reranked(query: str, hits: Sequence[Hit], scorer: PairScorer) -> list[Hit]:
    """The first candidates in the order of a cross-encoder's scores, the others behind them as they were.

    The new scores count down from the number of hits: those of the two parts cannot be compared.
    """
    first = hits[:RERANKED]
    scores = scorer.scores(query, [hit.text for hit in first])
    order = sorted(range(len(first)), key=lambda place: -scores[place])  # stable: ties stay as they were
    ordered = [*(first[place] for place in order), *hits[RERANKED:]]
    return [replace(hit, rank=n + 1, score=float(len(ordered) - n)) for n, hit in enumerate(ordered)]
