"""Names such as `hybrid:rrf+rerank`, and the searches that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, get_args

from likewise.errors import UsageError
from likewise.retrieval.fusion import DEFAULT_FUSION, fusion_rule
from likewise.retrieval.hits import Hit, Mode

if TYPE_CHECKING:
    from likewise.index.index import Index
    from likewise.retrieval.evaluation.evaluate import SearchFunction
    from likewise.retrieval.rerank.base import Reranker

DEFAULT_CONFIGURATIONS = "dense,lexical,hybrid"
RERANK = "rerank"


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
    index: Index, configuration: Configuration, *, reranker: Reranker | None = None, as_typed: bool = False
) -> SearchFunction:
    """The search that a configuration stands for, over an open index.

    Args:
        index: What is searched.
        configuration: How.
        reranker: Of configurations with `+rerank`.
        as_typed: Whether questions are in the query language, where quotation marks and the like mean
            something, as when a person types them; otherwise no character is an operator.

    Raises:
        UsageError: The configuration reranks and there is no reranker.
    """
    from likewise.retrieval.grammar import literal
    from likewise.retrieval.rerank.base import rerank
    from likewise.retrieval.search import Retriever

    if configuration.rerank and reranker is None:
        raise UsageError(
            f"{configuration.name} needs a cross-encoder, and none is given",
            remedy="--reranker NAME, a model folder or a hub id",
        )
    retriever = Retriever(index, fusion=configuration.fusion)

    def search(query: str, k: int) -> Sequence[Hit]:
        asked = query if as_typed else literal(query)
        result = retriever.search(asked, k=k, mode=configuration.mode)
        if configuration.rerank and reranker is not None:
            return _counting_down(rerank(result, reranker))
        return result

    return search


def _counting_down(hits: Sequence[Hit]) -> list[Hit]:
    """Hits whose scores say no more than their order.

    A reranker's scores and those of the hits that it did not get to cannot be compared, and a run is ranked
    by its scores.
    """
    return [replace(hit, score=float(len(hits) - place)) for place, hit in enumerate(hits)]
