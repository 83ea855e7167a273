"""Documents in two languages, aligned piece by piece: `en/keys.md` with `zh/keys.md`.

Two documents are taken for translations of each other if their paths differ in nothing but a language, and
each is in the language that its path says. They are aligned only where their outlines agree, and within a
section only where paragraphs and code follow each other in the same order: a pair that is missed costs
nothing, a wrong one teaches a wrong word.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import PurePosixPath

from likewise.index.readers.formats.markdown import structure
from likewise.index.records import Span
from likewise.retrieval.evaluation.self_questions import bare, has_words
from likewise.retrieval.pairs.documents import Documents, PairDocument
from likewise.retrieval.pairs.records import TextPair
from likewise.retrieval.pairs.sections import Section, is_markdown, sections_of
from likewise.retrieval.pairs.wording import beginning, weight

_CODES = (
    "ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ka ko lt lv ms nb nl nn no pl pt ro ru "
    "sk sl sr sv sw ta th tr uk ur vi zh"
)
_LANGUAGE = re.compile(rf"(?P<code>{'|'.join(_CODES.split())})(?:[-_](?:hans|hant|[a-z]{{2}}))?", re.I)
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_TERMS = 3  # distinct ones in each of two texts
# Lengths of a translation and its original, a Chinese character counting three letters, differ by no more.
_MOST_RATIO = 2.5


def language_of(key: str) -> Iterator[tuple[str, str, str]]:
    """The languages that a path may name: the path without them, the code, and what stands in the path.

    Example:
        >>> list(language_of("docs/zh-hant/keys.md"))
        [('docs/*/keys.md', 'zh', 'zh-hant')]
        >>> list(language_of("README.en.md")), list(language_of("keys.md"))
        ([('README.*.md', 'en', 'en')], [])
    """
    path = PurePosixPath(key)
    for number, part in enumerate(path.parts[:-1]):
        if match := _LANGUAGE.fullmatch(part):
            parts = [*path.parts]
            parts[number] = "*"
            yield "/".join(parts), match["code"].lower(), part
    stem, dot, name = path.stem.rpartition(".")
    if dot and (match := _LANGUAGE.fullmatch(name)):
        yield str(path.with_name(f"{stem}.*{path.suffix}")), match["code"].lower(), name


def parallel_documents(keys: Iterable[str]) -> list[tuple[str, str]]:
    """Paths that differ in their language alone: the English one, or the first, with each of the others.

    Example:
        >>> parallel_documents(["zh/keys.md", "en/keys.md", "ja/keys.md", "en/more.md"])
        [('en/keys.md', 'ja/keys.md'), ('en/keys.md', 'zh/keys.md')]
    """
    groups: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for key in sorted(keys):
        for place, code, name in language_of(key):
            groups[place].setdefault(name.lower(), (code, key))
    found: dict[tuple[str, str], None] = {}
    for group in groups.values():
        first = next((name for name, (code, _) in sorted(group.items()) if code == "en"), min(group))
        for name, (_, key) in sorted(group.items()):
            if name != first:
                found[group[first][1], key] = None
    return sorted(found)


def translations(keys: Iterable[str]) -> dict[str, frozenset[str]]:
    """The other documents that a path says are translations of each document; only for those that have any.

    Example:
        >>> found = translations(["zh/keys.md", "en/keys.md", "ja/keys.md", "en/more.md"])
        >>> sorted(found), sorted(found["ja/keys.md"])
        (['en/keys.md', 'ja/keys.md', 'zh/keys.md'], ['en/keys.md', 'zh/keys.md'])
    """
    groups: dict[str, set[str]] = {}
    for one, other in parallel_documents(keys):
        joined = groups.setdefault(one, {one}) | groups.setdefault(other, {other})
        for key in joined:
            groups[key] = joined
    return {key: frozenset(group - {key}) for key, group in groups.items()}


def parallel_pairs(documents: Documents) -> Iterator[TextPair]:
    """Headings and paragraphs with their translations."""
    for one, other in parallel_documents(documents):
        first, second = documents[one], documents[other]
        if _is_in_its_language(first) and _is_in_its_language(second):
            yield from _aligned(first, second)


def _is_in_its_language(document: PairDocument) -> bool:
    """Whether the text is in a language that its path names, as far as can be told."""
    return not document.language or document.language in {code for _, code, _ in language_of(document.key)}


def _aligned(one: PairDocument, other: PairDocument) -> Iterator[TextPair]:
    first, second = sections_of(one), sections_of(other)
    if [section.level for section in first] != [section.level for section in second]:
        return
    for a, b in zip(first, second, strict=True):
        if a.level and one.title != a.title:
            yield from _pair(one, other, a.heading, b.heading, (a.title, b.title))
        here, there = _pieces(one, a), _pieces(other, b)
        if [code for code, _ in here] == [code for code, _ in there]:
            for (code, span), (_, translated) in zip(here, there, strict=True):
                if not code:
                    yield from _pair(one, other, span, translated)


def _pair(
    one: PairDocument, other: PairDocument, a: Span, b: Span, names: tuple[str, str] | None = None
) -> Iterator[TextPair]:
    x, y = names or (a.of(one.text), b.of(other.text))
    least = 2 if names else _TERMS
    ratio = weight(x) / max(1, weight(y))
    if bare(x) == bare(y) or not 1 / _MOST_RATIO <= ratio <= _MOST_RATIO:
        return
    if has_words(x, least) and has_words(y, least):
        yield TextPair("parallel", x, y, other.key, other.lines_of(b), one.key, one.line_at(a.start))


def _pieces(document: PairDocument, section: Section) -> list[tuple[bool, Span]]:
    """Paragraphs and stretches of code of a section in order; whether each is code."""
    text, body = document.text, section.body
    code = structure(text).verbatim if is_markdown(document.key) else ()
    pieces: list[tuple[bool, Span]] = []
    at = body.start
    for span in [*(each for each in code if body.start <= each.start < body.end), Span(body.end, body.end)]:
        cuts = [at, *(match.end() for match in _PARAGRAPH.finditer(text, at, span.start)), span.start]
        for start, end in pairwise(cuts):
            trimmed = beginning(text, Span(start, end)) if text[start:end].strip() else None
            pieces += [(False, trimmed)] if trimmed is not None else []
        if span.start < span.end:
            pieces.append((True, span))
        at = max(at, span.end)
    return pieces
