"""All pairs of a set of documents: found kind by kind, each once, and none that asks for several things."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from random import Random
from typing import TypeVar

from likewise.errors import DataError, UsageError
from likewise.retrieval.evaluation.self_questions import bare
from likewise.retrieval.pairs.cloze import neighbour_pairs, sentence_pairs
from likewise.retrieval.pairs.documents import Documents
from likewise.retrieval.pairs.links import Targets, link_pairs
from likewise.retrieval.pairs.parallel import parallel_pairs
from likewise.retrieval.pairs.questions import question_pairs
from likewise.retrieval.pairs.records import KINDS, Kind, PairSet, TextPair
from likewise.retrieval.pairs.titles import heading_pairs, title_pairs

T = TypeVar("T")

# A log of a thousand passages must not be most of what is learned.
_MOST_PER_DOCUMENT = 100  # pairs of each kind; of translations as many as there are

# Of these an anchor may stand for one document only: "Introduction" asks for nothing.
_NAMING: tuple[Kind, ...] = ("title", "heading", "link", "sentence")


def make_pairs(
    documents: Documents,
    *,
    kinds: Sequence[Kind] = KINDS,
    limit: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> PairSet:
    r"""Make training pairs.

    Args:
        documents: By key; each is asked for a few times.
        kinds: Which pairs to make.
        limit: Most pairs of each kind, drawn at random; None for all. A document gives 100 of a kind at most.
        seed: Equal seeds give equal pairs.
        progress: Called with the number of documents done, and of all.

    Raises:
        UsageError: A kind is unknown, or the limit below 1.
        DataError: There is no pair.

    Example:
        >>> from likewise.index.records import Passage, Span
        >>> from likewise.retrieval.pairs.documents import PairDocument
        >>> text = "# Signing keys\n\nRotate them once every year, and ask the security team before you do."
        >>> passage = Passage(0, text, Span(0, len(text)), (1, 3), headings=("Signing keys",))
        >>> found = make_pairs({"keys.md": PairDocument("keys.md", "Signing keys", "en", (passage,))})
        >>> [(pair.kind, pair.anchor, pair.lines) for pair in found.pairs]
        [('title', 'Signing keys', (1, 3))]
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise UsageError(
            f"expected kinds of pairs out of {', '.join(KINDS)}, found {unknown[0] if unknown else 'none'}"
        )
    if limit is not None and limit < 1:
        raise UsageError(f"expected a limit of at least 1, found {limit}")
    wanted = [kind for kind in KINDS if kind in kinds]
    found: dict[Kind, list[TextPair]] = {kind: [] for kind in wanted}
    for pair in _all_pairs(documents, wanted, Random(seed), progress):
        found[pair.kind].append(pair)
    ambiguous: Counter[Kind] = Counter()
    repeated: Counter[Kind] = Counter()
    over: Counter[Kind] = Counter()
    seen: set[tuple[str, str]] = set()
    kept: list[TextPair] = []
    for kind in wanted:
        clear = _unambiguous(found[kind]) if kind in _NAMING else found[kind]
        ambiguous[kind] = len(found[kind]) - len(clear)
        fresh = []
        for pair in clear:
            texts = (bare(pair.anchor), bare(pair.positive))
            if texts in seen or texts[0] == texts[1]:
                repeated[kind] += 1
            else:
                seen.add(texts)
                fresh.append(pair)
        drawn = fresh if kind == "parallel" else _evenly(fresh, Random(f"{seed} {kind} document"))
        if limit is not None:
            drawn = _sample(drawn, limit, Random(f"{seed} {kind}"))
        over[kind] = len(fresh) - len(drawn)
        kept += drawn
    if not kept:
        raise DataError(
            f"no pair can be made from {len(documents):,} documents: their titles, headings and sentences are"
            " too short, or stand in several of them",
            remedy="add documents, or ask for more kinds: --kinds " + ",".join(KINDS),
        )
    return PairSet(tuple(kept), len(documents), repeated, ambiguous, over)


def _all_pairs(
    documents: Documents,
    kinds: Sequence[Kind],
    random: Random,
    progress: Callable[[int, int], None] | None,
) -> Iterator[TextPair]:
    targets = Targets(documents)
    for number, key in enumerate(documents, start=1):
        document = documents[key]
        makers: dict[Kind, Callable[[], Iterator[TextPair]]] = {
            "question": lambda: question_pairs(document),  # noqa: B023  # called within the turn
            "title": lambda: title_pairs(document),  # noqa: B023
            "heading": lambda: heading_pairs(document),  # noqa: B023
            "link": lambda: link_pairs(document, documents, targets),  # noqa: B023
            "sentence": lambda: sentence_pairs(document, random),  # noqa: B023
            "neighbour": lambda: neighbour_pairs(document),  # noqa: B023
        }
        for kind in kinds:
            if kind in makers:
                yield from makers[kind]()
        if progress is not None:
            progress(number, len(documents))
    if "parallel" in kinds:
        yield from parallel_pairs(documents)


def _evenly(pairs: Sequence[TextPair], random: Random) -> list[TextPair]:
    """The pairs in their order, of each document no more than it may give."""
    by_document: dict[str, list[int]] = defaultdict(list)
    for number, pair in enumerate(pairs):
        by_document[pair.source].append(number)
    numbers = [_sample(own, _MOST_PER_DOCUMENT, random) for own in by_document.values()]
    return [pairs[number] for number in sorted(chain(*numbers))]


def _sample(items: Sequence[T], most: int, random: Random) -> list[T]:
    """At most so many of the items, in their order."""
    if len(items) <= most:
        return list(items)
    return [items[number] for number in sorted(random.sample(range(len(items)), most))]


def _unambiguous(pairs: Sequence[TextPair]) -> list[TextPair]:
    """The pairs whose anchors lead to one document, or for a sentence to one place."""
    places: dict[str, set[object]] = defaultdict(set)
    for pair in pairs:
        place = (pair.source, pair.lines) if pair.kind == "sentence" else pair.source
        places[bare(pair.anchor)].add(place)
    return [pair for pair in pairs if len(places[bare(pair.anchor)]) == 1]
