"""Markdown: the file itself, with front matter, headings, fenced code and tables found.

Block structure follows CommonMark as far as it decides what is a heading and what is code; inline markup is
only taken out of titles. Headings inside quotes and list items belong to those, not to the document's
outline.
"""

from __future__ import annotations

import html
import re
from typing import NamedTuple

from likewise.index.readers.base import Reader, Source
from likewise.index.readers.decoding import decode
from likewise.index.readers.frontmatter import split
from likewise.index.readers.lines import Line, split_lines
from likewise.index.records import Extraction, Heading, Span

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
# Any indentation: a fence in a list item stands as far in as the item's text.
_FENCE = re.compile(r"[ \t]*(?:>[ \t]?)*[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}(?=[^`]*$)|~{3,})")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_INDENTED = re.compile(r" {4}| {0,3}\t")
_QUOTE = re.compile(r" {0,3}>")
_TABLE_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
# Blocks of HTML whose content is not Markdown, with what ends them (CommonMark 4.6, kinds 1 to 5).
_HTML = re.compile(
    r" {0,3}<(?:(script|pre|style|textarea)(?=[\s>]|$)|(!--)|(\?)|(!\[CDATA\[)|(![a-z]))", re.I
)
_HTML_ENDS = (
    re.compile(r"</(?:script|pre|style|textarea)>", re.I),
    *map(re.compile, ("-->", r"\?>", r"\]\]>", ">")),
)

# What a line that is more than running text begins with.
_BLOCK_SIGNS = frozenset("#`~><-*+=_|:0123456789")
_ITEM_SIGNS = frozenset("-*+0123456789")
_ADMONITION_LINES = 50
# Longer lines are text: no one titles a section so, and patterns need time in the square of a line's length.
_MAX_MARKUP_LINE = 2000

# Taken out of titles.
_ATTRIBUTES = re.compile(r"[ \t]*\{:?[ \t]*(?:[#.][\w:.-]+|[\w-]+=\S+)(?:[ \t]+[^{}]*)?\}[ \t]*$")
_IMAGE_OR_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<!--.*?-->")
# Underscores inside a word (snake_case) are letters; asterisks are not, and CJK text puts no space around
# them.
_EMPHASIS = re.compile(r"(\*{1,3}|~~|(?<!\w)_{1,3})(?=\S)(.+?)(?<=\S)\1(?!(?<=_)\w)")
# An escaped character, or code: nothing inside is markup.
_LITERAL = re.compile(r"\\([!-/:-@\[-`{-~])|(`+)(.+?)\2")


class Structure(NamedTuple):
    """Headings and verbatim spans of a Markdown text."""

    headings: tuple[Heading, ...]
    verbatim: tuple[Span, ...]


def structure(text: str, start: int = 0) -> Structure:
    r"""Find the headings, the fenced code blocks and the tables.

    Args:
        text: The text; spans refer to it.
        start: Where to begin.

    Example:
        >>> found = structure("# Keys { #keys }\n\n~~~\n# not a heading\n~~~\n\nRotate\n------\n")
        >>> [(heading.level, heading.title) for heading in found.headings]
        [(1, 'Keys'), (2, 'Rotate')]
        >>> len(found.verbatim)
        1
    """
    scanner = _Scanner(split_lines(text, start))
    number = 0
    while number < len(scanner.lines):
        number = scanner.step(number)
    return Structure(tuple(scanner.headings), tuple(scanner.verbatim))


class _Scanner:
    """Goes over the lines block by block and notes what it finds."""

    def __init__(self, lines: list[Line]) -> None:
        self.lines = lines
        self.headings: list[Heading] = []
        self.verbatim: list[Span] = []
        self._paragraph: int | None = (
            None  # first line of the paragraph that an underline would make a heading
        )
        self._in_list = False

    def step(self, number: int) -> int:
        """Take the line of this number, or the block that begins with it; the number of the next line."""
        content = self.lines[number].text
        if not content.strip():
            self._paragraph = None
            return number + 1
        if len(content) > _MAX_MARKUP_LINE:
            return self._text(number, indented=False)
        indented = bool(_INDENTED.match(content))
        first = content.lstrip()[0]
        if not indented:
            # A list goes on over blank lines while its content is indented, and only then.
            begins_item = first in _ITEM_SIGNS and bool(_LIST_ITEM.match(content))
            self._in_list = begins_item or (self._in_list and content[0] in " \t")
        if first not in _BLOCK_SIGNS and "|" not in content:
            return self._text(number, indented=indented)
        if (fence := _FENCE.match(content)) and (
            not indented or self._in_list or self._in_admonition(number)
        ):
            last = _closing_fence(self.lines, number, fence[1])
            return self._verbatim_until(number, last)
        if indented and self._paragraph is None:
            return number + 1  # indented code, or the text of a list item
        if block := _HTML.match(content):
            self._paragraph = None
            return _html_end(self.lines, number, block) + 1
        if not indented and self._heading(number):
            self._paragraph = None
        elif "|" in content and number + 1 < len(self.lines) and _is_table_rule(self.lines[number + 1].text):
            last = number + 1
            while last + 1 < len(self.lines) and self.lines[last + 1].text.strip():
                last += 1
            return self._verbatim_until(number, last)
        elif _RULE.match(content) or _QUOTE.match(content) or _LIST_ITEM.match(content):
            self._paragraph = None
        else:
            return self._text(number, indented=indented)
        return number + 1

    def _text(self, number: int, *, indented: bool) -> int:
        if self._paragraph is None and not indented and not self._in_list and not self._goes_on(number):
            self._paragraph = number
        return number + 1

    def _verbatim_until(self, number: int, last: int) -> int:
        self.verbatim.append(Span(self.lines[number].start, self.lines[last].end))
        self._paragraph = None
        return last + 1

    def _heading(self, number: int) -> bool:
        """Whether the line makes a heading, by itself or of the paragraph above it."""
        line = self.lines[number]
        if atx := _ATX.match(line.text):
            title = "" if atx[2] is None or set(atx[2]) == {"#"} else plain_title(atx[2])
            first, level = number, len(atx[1])
        elif self._paragraph is not None and (underline := _SETEXT.match(line.text)):
            first, level = self._paragraph, 1 if underline[1][0] == "=" else 2
            title = plain_title(" ".join(item.text.strip() for item in self.lines[first:number]))
        else:
            return False
        if title:
            self.headings.append(Heading(Span(self.lines[first].start, line.end), level, title))
        return True

    def _goes_on(self, number: int) -> bool:
        """Whether a line continues the quote or list item above it without being marked as such."""
        above = self.lines[number - 1].text if number else ""
        return bool(above.strip() and (_QUOTE.match(above) or _LIST_ITEM.match(above)))

    def _in_admonition(self, number: int) -> bool:
        """Whether a line stands in a block of MkDocs (`!!! note`, `=== "Tab"`), whose text is indented."""
        for above in reversed(self.lines[max(0, number - _ADMONITION_LINES) : number]):
            if above.text.strip() and not _INDENTED.match(above.text):
                return above.text.lstrip().startswith(("!!!", "???", '=== "'))
        return False


def plain_title(markup: str) -> str:
    """A heading as a person reads it: no anchors, links, emphasis, code marks, tags or escapes.

    Example:
        >>> plain_title("Use `keys` with [**OAuth2**](oauth2.md) { #use-keys }")
        'Use keys with OAuth2'
    """
    title = _ATTRIBUTES.sub("", markup[:_MAX_MARKUP_LINE])
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[1] or match[3].strip())
        return f"\0{len(kept) - 1}\0"

    # Literals first and set aside.
    title = _LITERAL.sub(keep, title.replace("\0", ""))
    title = _TAG.sub("", _IMAGE_OR_LINK.sub(r"\1", _IMAGE_OR_LINK.sub(r"\1", title)))
    for _ in range(3):
        title = _EMPHASIS.sub(r"\2", title)
    title = html.unescape(title)
    title = re.sub("\0(\\d+)\0", lambda match: kept[int(match[1])], title)
    return " ".join(title.split())


def _closing_fence(lines: list[Line], opening: int, marker: str) -> int:
    """Number of the line that closes a fence, the last line if none does."""
    closing = re.compile(rf"[ \t>]*{re.escape(marker[0])}{{{len(marker)},}}[ \t]*$")
    for number in range(opening + 1, len(lines)):
        if closing.match(lines[number].text):
            return number
    return len(lines) - 1


def _html_end(lines: list[Line], opening: int, block: re.Match[str]) -> int:
    end = next(end for end, kind in zip(_HTML_ENDS, block.groups(), strict=True) if kind)
    if end.search(lines[opening].text, block.end()):
        return opening
    for number in range(opening + 1, len(lines)):
        if end.search(lines[number].text):
            return number
    return len(lines) - 1


def _is_table_rule(content: str) -> bool:
    return "|" in content and bool(_TABLE_RULE.match(content))


def _read(source: Source) -> Extraction:
    decoded = decode(source.data)
    front = split(decoded.text)
    headings, verbatim = structure(decoded.text, front.end)
    first = next((heading.title for heading in headings if heading.level == 1), "")
    # What could not be understood, and what is all there is, can only be found as text.
    is_metadata = not front.note and bool(decoded.text[front.end :].strip())
    return Extraction(
        text=decoded.text,
        reader="",
        title=front.text("title") or first,
        language=front.text("lang", "language", "locale"),
        headings=headings,
        breaks=() if is_metadata else (front.end,) if 0 < front.end < len(decoded.text) else (),
        verbatim=verbatim if is_metadata or not front.end else (Span(0, front.end), *verbatim),
        metadata=front.metadata,
        body_start=front.end if is_metadata else 0,
        encoding=decoded.encoding,
        lossy=decoded.lossy,
        notes=(front.note,) if front.note else (),
    )


READER = Reader(
    name="markdown",
    version=2,
    read=_read,
    suffixes=frozenset((".md", ".markdown", ".mdown", ".mkd", ".mkdn", ".mdx", ".rmd", ".qmd")),
)
