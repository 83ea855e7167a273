"""reStructuredText: the file itself, with section titles, literal blocks and document fields found.

Titles are told by their adornment as docutils does it: level by order of appearance of each style. Directives
are not executed and included files are not read; what a person wrote in this file is the text.
"""

from __future__ import annotations

import re
import unicodedata

from likewise.index.readers.base import Reader, Source
from likewise.index.readers.decoding import decode
from likewise.index.readers.lines import Line, split_lines
from likewise.index.records import Extraction, Heading, Json, Span

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t]*$")
_VERBATIM_DIRECTIVE = re.compile(
    r"[ \t]*\.\. (?:code-block|code|sourcecode|literalinclude|parsed-literal|highlight|math|raw|prompt"
    r"|doctest|testcode|testoutput|ipython|csv-table|list-table|table|productionlist)::"
)
_COMMENT = re.compile(r"[ \t]*\.\.(?:[ \t]+(?!\[|_|\||[\w:+.-]+::)|$)")
_TABLE_BORDER = re.compile(r"[ \t]*(?:\+[-=+]+\+|=+(?:[ \t]+=+)+)[ \t]*$")
# Document fields stand at the top or not at all.
_HEAD_LINES = 60
_FIELD = re.compile(r":([^:\s][^:]*):(?:[ \t]+(.*))?$")

_MAX_TITLE = 1000
_ROLE = re.compile(r":[\w:+.-]+:`([^`]+)`|`([^`]+)`(?:_{1,2}|:[\w:+.-]+:)?")
_TARGET = re.compile(r"\s*<[^<>]+>$")
_LITERAL = re.compile(r"``(.+?)``")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,2})(?=\S)(.+?)(?<=\S)\1(?![\w*])")


def _read(source: Source) -> Extraction:
    decoded = decode(source.data)
    lines = split_lines(decoded.text)
    headings, verbatim = _structure(lines)
    metadata = _fields(lines)
    return Extraction(
        text=decoded.text,
        reader="",
        title=_first_text(metadata, "title") or _document_title(headings),
        language=_first_text(metadata, "lang", "language"),
        headings=tuple(headings),
        verbatim=tuple(verbatim),
        metadata=metadata,
        encoding=decoded.encoding,
        lossy=decoded.lossy,
    )


def _structure(lines: list[Line]) -> tuple[list[Heading], list[Span]]:
    headings: list[Heading] = []
    verbatim: list[Span] = []
    styles: list[tuple[str, bool]] = []  # (character, overlined) in the order in which levels appear
    number = 0
    while number < len(lines):
        content = lines[number].text
        fresh = number == 0 or not lines[number - 1].text.strip() or _ends_block(lines[number - 1].text)
        found = _title_at(lines, number) if fresh and content.strip() else None
        if found is not None:
            first, last, title, style = found
            if style not in styles:
                styles.append(style)
            span = Span(lines[first].start, lines[last].end)
            headings.append(Heading(span, styles.index(style) + 1, title))
            number = last + 1
            continue
        block = _block_end(lines, number) if _opens_block(content) else number
        if block > number:
            if not _COMMENT.match(content):
                first = (
                    number + 1 if content.rstrip().endswith("::") and not _is_directive(content) else number
                )
                while first < block and not lines[first].text.strip():
                    first += 1
                verbatim.append(Span(lines[first].start, lines[block].end))
            number = block + 1
        elif _TABLE_BORDER.match(content):
            last = number
            while last + 1 < len(lines) and lines[last + 1].text.strip():
                last += 1
            verbatim.append(Span(lines[number].start, lines[last].end))
            number = last + 1
        else:
            number += 1
    return headings, verbatim


def _title_at(lines: list[Line], number: int) -> tuple[int, int, str, tuple[str, bool]] | None:
    """The title that begins at a line: its first and last line, its text and its style."""

    def adornment(at: int) -> str:
        match = _ADORNMENT.match(lines[at].text) if at < len(lines) else None
        return match[0].rstrip() if match else ""

    def fits(line: str, title: str) -> bool:
        # docutils takes a line of four or more even where the title is wider, with a warning.
        return len(line) >= _width(title) or len(line) >= 4

    over = adornment(number)
    if over and number + 2 < len(lines):
        title, under = lines[number + 1].text.strip(), adornment(number + 2)
        if title and under == over and fits(over, title) and not adornment(number + 1):
            return number, number + 2, _plain(title), (over[0], True)
    title = lines[number].text
    under = adornment(number + 1)
    if not over and under and not title[:1].isspace() and fits(under, title.rstrip()) and _plain(title):
        return number, number + 1, _plain(title), (under[0], False)
    return None


def _width(title: str) -> int:
    """Columns of a text in a terminal: CJK characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in title
    )


def _is_directive(content: str) -> bool:
    return bool(_VERBATIM_DIRECTIVE.match(content))


def _opens_block(content: str) -> bool:
    """Whether an indented block that is no prose follows: code, a literal block, a comment."""
    if _is_directive(content) or _COMMENT.match(content):
        return True
    return content.rstrip().endswith("::") and not content.lstrip().startswith(".. ")


def _ends_block(content: str) -> bool:
    """Whether a title may stand right below: explicit markup is a block of one line."""
    return content.startswith(".. ") or content.startswith("__ ")


def _block_end(lines: list[Line], opening: int) -> int:
    """Last line that is indented more than the opening one."""
    margin = _indent(lines[opening].text)
    last = opening
    for number in range(opening + 1, len(lines)):
        content = lines[number].text
        if content.strip():
            if _indent(content) <= margin:
                break
            last = number
    return last


def _indent(content: str) -> int:
    expanded = content.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())


def _plain(markup: str) -> str:
    """A title as a person reads it."""
    literals: list[str] = []

    def keep(match: re.Match[str]) -> str:
        literals.append(match[1])
        return f"\0{len(literals) - 1}\0"

    title = _LITERAL.sub(keep, markup[:_MAX_TITLE])
    title = _ROLE.sub(lambda match: _TARGET.sub("", match[1] or match[2]), title)
    title = re.sub(r"\\(.)", r"\1", _EMPHASIS.sub(r"\2", title))
    title = re.sub("\0(\\d+)\0", lambda match: literals[int(match[1])], title)
    return " ".join(title.split())


def _fields(lines: list[Line]) -> dict[str, Json]:
    """The field list at the top of the file, before the title or right behind it: `:author: Ann`."""
    fields: dict[str, Json] = {}
    prose = 0
    for line in lines[:_HEAD_LINES]:
        content = line.text
        if match := _FIELD.match(content):
            fields[match[1].strip().lower()] = (match[2] or "").strip()
        elif content.strip() and not content.startswith(".. ") and not _ADORNMENT.match(content):
            prose += 1
            if fields or prose > 1:
                break
    return fields


def _first_text(fields: dict[str, Json], *names: str) -> str:
    return next((str(fields[name]) for name in names if fields.get(name)), "")


def _document_title(headings: list[Heading]) -> str:
    return headings[0].title if headings and headings[0].level == 1 else ""


READER = Reader(
    name="rst",
    version=1,
    read=_read,
    suffixes=frozenset((".rst", ".rest")),
)
