r"""The query language: words, "exact phrases", -exclusions and fields; the same for every mode of search.

    signing key              words: any of them may answer, the more and the rarer the better
    "signing key"            these words side by side, in the passage, one of its headings or its title;
                             also “signing key”, 「簽署金鑰」 and 『簽署金鑰』
    -draft                   no passage with this word (or its inflections)
    -"first draft"           no passage with this phrase
    path:docs/**  -path:old  title:keys  title:"signing keys"  suffix:.md  lang:zh  state:ok
    date>=2025-01-01  meta.author=Ann
                             only these documents: the filters of `retrieval.filters`, without spaces

An operator begins a word: it stands at the beginning or behind white space. Whatever looks like one and is
none stays text: `C++`, `e-mail`, `a - b`, `--flag`, `-x`, `-40`, `12:30`, `http://host`, `C:\temp`,
`key: value`, `NAME=value`, a quotation mark that nothing closes or that follows a letter (`5" disk`). A field
whose value makes no sense stays text too, with a notice. A query of nothing but exclusions and fields has
nothing to look for, so all of it is text. No text is an error.

`parse` is a pure function; nothing here looks at an index.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from likewise.errors import FilterError
from likewise.index.analyzer import analyze_query
from likewise.index.phrases import has_words
from likewise.index.records import Filter
from likewise.index.segmentation import UNSPACED_RUN
from likewise.retrieval.filters import parse_filter
from likewise.retrieval.queries import has_content

# Each stops at another opening mark, so that one that nothing closes costs no more than it is long.
_QUOTED = r"\"[^\"]+\"|＂[^＂]+＂|“[^“”]+”|「[^「」]+」|『[^『』]+』"
_MINUS = "[-－]"
# Characters that end an excluded word, or show that it is none: `-Dname=value`, `-L/usr/lib`.
_NO_WORD = r"\s=/:\\<>|*,;!?，。；！？、()（）\"“”「」『』"

_OPERATOR = re.compile(
    rf"(?<!\S)(?P<field>(?P<minus>{_MINUS}?)(?P<name>path|title|suffix|lang|state|date|meta\.[^\s:=<>：]+)"
    rf"(?P<relation>>=|<=|[:=<>：])(?P<value>{_QUOTED}|[^\s=\"“「『]\S*))"
    rf"|(?<!\S){_MINUS}(?P<excluded_phrase>{_QUOTED})"
    rf"|(?<!\S){_MINUS}(?P<excluded>[^\W\d_][^{_NO_WORD}]*)(?=[\s,;!?，。；！？、)）]|$)"
    rf"|(?P<phrase>{_QUOTED})"
)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """What a query asks for.

    Attributes:
        query: As it was typed.
        text: What to look for, without operators: for the encoder and for the analyser. Phrases are in it.
        phrases: Each must occur.
        excluded: Words of which none may occur.
        excluded_phrases: Phrases of which none may occur.
        filter: Which documents may answer.
        notices: What was not taken for an operator although it looks like one, and why.
    """

    query: str
    text: str
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    excluded_phrases: tuple[str, ...] = ()
    filter: Filter = field(default_factory=Filter)
    notices: tuple[str, ...] = ()

    @property
    def terms(self) -> list[str]:
        """What the lexical side looks up."""
        return analyze_query(self.text)

    @property
    def is_literal(self) -> bool:
        """Whether no operator was found."""
        return not (self.phrases or self.excluded or self.excluded_phrases or self.filter)


def literal(query: str) -> ParsedQuery:
    """A query in which no character is an operator.

    Example:
        >>> literal('"signing key" -old').text
        '"signing key" -old'
    """
    return ParsedQuery(query, query)


def parse(query: str) -> ParsedQuery:
    r"""Read a query. Any text can be read; plain words come out unchanged.

    Example:
        >>> found = parse('rotate "signing key" -draft path:docs/**')
        >>> found.text, found.phrases, found.excluded, found.filter.paths
        ('rotate signing key', ('signing key',), ('draft',), ('docs/**',))
        >>> parse("如何更換「簽署金鑰」").phrases, parse("C++ e-mail --flag 12:30").text
        (('簽署金鑰',), 'C++ e-mail --flag 12:30')
    """
    return _Reading(query).result()


class _Reading:
    def __init__(self, query: str) -> None:
        self._query = query
        self._kept: list[str] = []  # the text between operators, and inside phrases
        self._phrases: list[str] = []
        self._excluded: list[str] = []
        self._excluded_phrases: list[str] = []
        self._conditions: list[str] = []
        self._filter = Filter()
        self._notices: list[str] = []

    def result(self) -> ParsedQuery:
        text = self._read()
        if not self._found:
            return ParsedQuery(self._query, self._query, notices=tuple(self._notices))
        if not has_content(text):
            notice = "the query has nothing but exclusions and fields, so all of it was searched for as text"
            return ParsedQuery(self._query, self._query, notices=(*self._notices, notice))
        return ParsedQuery(
            self._query,
            text,
            tuple(self._phrases),
            tuple(self._excluded),
            tuple(self._excluded_phrases),
            self._filter,
            tuple(self._notices),
        )

    @property
    def _found(self) -> Sequence[object]:
        return self._phrases or self._excluded or self._excluded_phrases or self._conditions

    def _read(self) -> str:
        begun = looked = 0  # text before `begun` is dealt with, operators before `looked` are
        while match := _OPERATOR.search(self._query, looked):
            inside = self._take(match)
            if inside is None:
                looked = match.start() + 1
                continue
            self._kept += [self._query[begun : match.start()], inside]
            begun = looked = match.end()
        self._kept.append(self._query[begun:])
        return " ".join(stripped for piece in self._kept if (stripped := piece.strip()))

    def _take(self, match: re.Match[str]) -> str | None:
        """Note an operator; returns the text that stays in its place, or None if it is none."""
        if match["field"]:
            return self._take_field(match)
        if match["phrase"]:
            inside = match["phrase"][1:-1].strip()
            if not has_words(inside) or _follows_a_letter(match):
                return None
            self._phrases.append(inside)
            return inside
        if match["excluded_phrase"]:
            inside = match["excluded_phrase"][1:-1].strip()
            if not has_words(inside):
                return None
            self._excluded_phrases.append(inside)
            return ""
        word = match["excluded"].rstrip(".'’-")
        if not has_words(word) or (len(word) == 1 and word.isascii()):
            return None  # the option of a command: ls -l
        self._excluded.append(word)
        return ""

    def _take_field(self, match: re.Match[str]) -> str | None:
        name, relation, value = match["name"], match["relation"].replace("：", ":"), match["value"]
        if relation != ":" and name != "date" and not (name.startswith("meta.") and relation == "="):
            return None  # path=/usr/bin is a line of a script
        if re.fullmatch(_QUOTED, value):
            value = value[1:-1]
        condition = f"{'-' if match['minus'] else ''}{name}{relation}{value}"
        try:
            self._filter = parse_filter([*self._conditions, condition])
        except FilterError as error:
            self._notices.append(f"{match['field']} was searched for as text: {error.message}")
            return match["field"]
        self._conditions.append(condition)
        return ""


def _follows_a_letter(match: re.Match[str]) -> bool:
    r"""Whether a straight quotation mark stands for inches or seconds, or closes what nothing opened.

    Chinese and Japanese put no space before a quotation.
    """
    before = match.string[match.start() - 1 : match.start()]
    straight = match[0][0] in '"＂'
    return straight and before.isalnum() and not UNSPACED_RUN.fullmatch(before)
