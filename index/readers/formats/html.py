"""HTML: what a browser would show, as paragraphs, headings, lists, tables and preformatted text.

Parsed as browsers do it (Lexbor), so that no page is too broken. Scripts, styles and hidden elements are left
out; navigation is kept, because telling it from content is a guess. Only its links are not, where it calls
itself navigation: they are the same on every page. Offsets are places in this text, not in the source. The
walk does not recurse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from likewise.index.readers.base import Reader, Source
from likewise.index.readers.compose import TextBuilder, clean
from likewise.index.readers.decoding import decode
from likewise.index.records import Extraction, Json, Span

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

# How much of the file may come before the charset declaration; browsers look at 1024 bytes.
_PRESCAN = 4096
_CHARSET = re.compile(
    rb"<meta\b[^>]*?charset\s*=\s*[\"']?\s*([\w.:-]+)|<\?xml[^>]*?encoding\s*=\s*[\"']([\w.:-]+)", re.I
)
_SPACE = re.compile(r"[ \t\n\r\f]+")
_NOT_SHOWN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)

_SKIPPED = frozenset(
    (
        "head",
        "script",
        "style",
        "template",
        "noscript",
        "svg",
        "math",
        "iframe",
        "object",
        "embed",
        "canvas",
        "audio",
        "video",
        "map",
        "datalist",
        "select",
    )
)
_BLOCKS = frozenset(
    (
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "caption",
        "center",
        "dd",
        "details",
        "dialog",
        "dir",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "frameset",
        "header",
        "hr",
        "html",
        "legend",
        "li",
        "main",
        "menu",
        "nav",
        "noframes",
        "ol",
        "optgroup",
        "p",
        "pre",
        "search",
        "section",
        "summary",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    )
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_METADATA = {
    "description": "description",
    "author": "author",
    "keywords": "keywords",
    "date": "date",
    "article:published_time": "date",
    "og:description": "description",
}
_MAX_LIST_INDENT = 8


def _read(source: Source) -> Extraction:
    from selectolax.lexbor import LexborHTMLParser

    match = _CHARSET.search(source.data[:_PRESCAN])
    declared = (match[1] or match[2]).decode("ascii", "ignore") if match else ""
    decoded = decode(source.data, declared=declared, strict=source.kind == "unknown")
    tree = LexborHTMLParser(decoded.text)
    builder = TextBuilder(source.max_characters)
    if tree.body is not None:
        _Writer(builder).walk(tree.body)
    extraction = builder.extraction(
        title=_title(tree),
        language=_language(tree),
        metadata=_metadata(tree),
        encoding=decoded.encoding,
        lossy=decoded.lossy,
    )
    if extraction.title or not extraction.headings:
        return extraction
    from dataclasses import replace

    return replace(extraction, title=extraction.headings[0].title)


class _Writer:
    """Turns the events of a walk over the tree into blocks of text."""

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._inline: list[str] = []
        self._preformatted = 0
        self._lists: list[int] = []  # number of the next item of each open list, 0 for bullets
        self._marker = ""  # of the item that has begun and has no text yet
        self._in_item = False
        self._after_item = False
        self._rows: list[list[str]] | None = None  # of the data table that is open
        self._navigation: int | None = None  # the outermost navigation that is open
        self._link: tuple[str, int] | None = None  # target of the open link, and the piece that it begins at
        self._links: list[tuple[str, str]] = []  # text and target of those that are not written yet

    def walk(self, root: LexborNode) -> None:
        """Write the content of a node."""
        node: LexborNode | None = root
        while node is not None:
            tag = node.tag or ""
            below = None
            if tag == "-text":
                self._text(node.text_content or "")
            elif tag[:1] != "-" and tag not in _SKIPPED and not _is_hidden(node):
                self._start(tag, node)
                below = node.first_child
                if below is None:
                    self._end(tag, node)
            if below is not None:
                node = below
                continue
            while node is not None and node.mem_id != root.mem_id and node.next is None:
                node = node.parent
                if node is not None:
                    self._end(node.tag or "", node)
            node = None if node is None or node.mem_id == root.mem_id else node.next
        self._flush()

    def _text(self, text: str) -> None:
        self._inline.append(clean(text) if self._preformatted else _SPACE.sub(" ", clean(text)))

    def _start(self, tag: str, node: LexborNode) -> None:
        if self._navigation is None and _is_navigation(tag, node):
            self._navigation = node.mem_id
        if tag == "br":
            self._inline.append("\n")
        elif tag in _BLOCKS or tag in _HEADINGS:
            self._flush()
        if tag == "pre":
            self._preformatted += 1
        elif tag == "a":
            self._begin_link(node)
        elif tag in ("ul", "ol", "menu", "dir"):
            start = node.attributes.get("start") or "1"
            self._lists.append((int(start) if re.fullmatch(r"\d{1,6}", start) else 1) if tag == "ol" else 0)
        elif tag == "li":
            self._begin_item()
        elif tag == "table" and self._rows is None and not _is_layout(node):
            self._rows = []
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])

    def _end(self, tag: str, node: LexborNode) -> None:
        if node.mem_id == self._navigation:
            self._navigation = None
        if tag in _HEADINGS:
            self._flush(level=_HEADINGS[tag])
        elif tag == "a":
            self._end_link()
        elif tag in ("td", "th") and self._rows:
            self._end_link()
            self._rows[-1].append(" ".join("".join(self._inline).split()))
            self._inline.clear()
        elif tag == "caption" and self._rows is not None:
            rows, self._rows = self._rows, None
            self._flush()  # a paragraph of its own above the table
            self._rows = rows
        elif tag in _BLOCKS:
            self._flush()
        if tag == "pre":
            self._preformatted = max(0, self._preformatted - 1)
        elif tag in ("ul", "ol", "menu", "dir") and self._lists:
            self._lists.pop()
            self._in_item = self._after_item = bool(self._lists)
        elif tag == "li":
            self._in_item, self._marker = False, ""
        elif tag == "table" and self._rows is not None:
            rows, self._rows = self._rows, None
            lines = [" | ".join(cells) for cells in rows if any(cells)]
            table = "\n".join(lines)
            self._builder.block(table, verbatim=True)
            self._place_links(table)
            self._after_item = False

    def _begin_item(self) -> None:
        self._in_item = True
        if self._lists and self._lists[-1]:
            self._marker = f"{self._lists[-1]}. "
            self._lists[-1] += 1
        else:
            self._marker = "- "

    def _begin_link(self, node: LexborNode) -> None:
        self._end_link()
        target = (node.attributes.get("href") or "").strip()
        if target and self._navigation is None:
            self._link = target, len(self._inline)

    def _end_link(self) -> None:
        """Close the link that is open, if it has any text; the rest of one around several blocks has none."""
        if self._link is not None:
            target, start = self._link
            text = "".join(self._inline[start:])
            if text.strip():
                self._links.append((text, clean(target)))
            self._link = None

    def _place_links(self, written: str) -> None:
        """Find the links, in their order, in the block that was just written.

        Its white space is no longer what it was, so they are looked for; where the words of one stand twice,
        that may be the earlier place.
        """
        begin, at = self._builder.length - len(written), 0
        for text, target in self._links:
            match = re.compile(r"\s+".join(map(re.escape, text.split()))).search(written, at)
            if match is not None:
                at = match.end()
                self._builder.link(Span(begin + match.start(), begin + at), target)
        self._links.clear()

    def _flush(self, *, level: int = 0) -> None:
        """Write what has been collected as one block; inside a data table, only part the words."""
        if self._rows is not None:
            self._inline.append(" ")
            return
        if any(map(str.strip, self._inline)):
            self._end_link()
        elif self._link is not None:
            self._link = self._link[0], 0
        text = "".join(self._inline)
        self._inline.clear()
        if self._preformatted:
            text = text.strip("\n").rstrip()
        else:
            text = "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()
        if not text:
            return
        if level:
            text = text.replace("\n", " ")
            self._builder.heading(text, level=level)
            self._place_links(text)
            self._after_item = False
            return
        gap = "\n\n"
        if self._in_item and not self._preformatted:
            indent = "  " * min(max(0, len(self._lists) - 1), _MAX_LIST_INDENT)
            gap = "\n" if self._after_item and self._marker else gap
            text = indent + self._marker + text
            self._marker = ""
        self._builder.block(text, verbatim=bool(self._preformatted), gap=gap)
        self._place_links(text)
        self._after_item = self._in_item


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    if not attributes:
        return False
    return "hidden" in attributes or bool(_NOT_SHOWN.search(attributes.get("style") or ""))


def _is_navigation(tag: str, node: LexborNode) -> bool:
    return tag == "nav" or node.attributes.get("role") == "navigation"


def _is_layout(table: LexborNode) -> bool:
    """Whether a table arranges parts of the page rather than data."""
    return any(node.mem_id != table.mem_id for node in table.css("table, h1, h2, h3, h4, h5, h6, pre"))


def _title(tree: LexborHTMLParser) -> str:
    node = tree.css_first("head title")
    return " ".join(clean(node.text()).split()) if node is not None else ""


def _language(tree: LexborHTMLParser) -> str:
    root = tree.css_first("html")
    attributes: Mapping[str, str | None] = root.attributes if root is not None else {}
    return attributes.get("lang") or attributes.get("xml:lang") or ""


def _metadata(tree: LexborHTMLParser) -> dict[str, Json]:
    metadata: dict[str, Json] = {}
    for node in tree.css("meta"):
        attributes = node.attributes
        key = _METADATA.get((attributes.get("name") or attributes.get("property") or "").lower())
        content = " ".join(clean(attributes.get("content") or "").split())
        if key and content:
            metadata.setdefault(key, content)
    return metadata


READER = Reader(
    name="html",
    version=1,
    read=_read,
    suffixes=frozenset((".html", ".htm", ".xhtml", ".xht", ".shtml")),
)
