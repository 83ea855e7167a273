"""HTML: what a browser would show, as paragraphs, headings, lists, tables and preformatted text.

Parsed as browsers do it (Lexbor), so that no page is too broken. Scripts, styles and hidden elements are left
out; navigation is kept, because telling it from content is a guess. Offsets are places in this text, not in
the source. The walk does not recurse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from likewise.index.readers.base import Reader, Source
from likewise.index.readers.compose import TextBuilder, clean
from likewise.index.readers.decoding import decode
from likewise.index.records import Extraction, Json

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
                    self._end(tag)
            if below is not None:
                node = below
                continue
            while node is not None and node.mem_id != root.mem_id and node.next is None:
                node = node.parent
                if node is not None:
                    self._end(node.tag or "")
            node = None if node is None or node.mem_id == root.mem_id else node.next
        self._flush()

    def _text(self, text: str) -> None:
        self._inline.append(clean(text) if self._preformatted else _SPACE.sub(" ", clean(text)))

    def _start(self, tag: str, node: LexborNode) -> None:
        if tag == "br":
            self._inline.append("\n")
        elif tag in _BLOCKS or tag in _HEADINGS:
            self._flush()
        if tag == "pre":
            self._preformatted += 1
        elif tag in ("ul", "ol", "menu", "dir"):
            start = node.attributes.get("start") or "1"
            self._lists.append((int(start) if re.fullmatch(r"\d{1,6}", start) else 1) if tag == "ol" else 0)
        elif tag == "li":
            self._begin_item()
        elif tag == "table" and self._rows is None and not _is_layout(node):
            self._rows = []
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])

    def _end(self, tag: str) -> None:
        if tag in _HEADINGS:
            self._flush(level=_HEADINGS[tag])
        elif tag in ("td", "th") and self._rows:
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
            self._builder.block("\n".join(lines), verbatim=True)
            self._after_item = False

    def _begin_item(self) -> None:
        self._in_item = True
        if self._lists and self._lists[-1]:
            self._marker = f"{self._lists[-1]}. "
            self._lists[-1] += 1
        else:
            self._marker = "- "

    def _flush(self, *, level: int = 0) -> None:
        """Write what has been collected as one block; inside a data table, only part the words."""
        if self._rows is not None:
            self._inline.append(" ")
            return
        text = "".join(self._inline)
        self._inline.clear()
        if self._preformatted:
            text = text.strip("\n").rstrip()
        else:
            text = "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()
        if not text:
            return
        if level:
            self._builder.heading(text.replace("\n", " "), level=level)
            self._after_item = False
            return
        gap = "\n\n"
        if self._in_item and not self._preformatted:
            indent = "  " * min(max(0, len(self._lists) - 1), _MAX_LIST_INDENT)
            gap = "\n" if self._after_item and self._marker else gap
            text = indent + self._marker + text
            self._marker = ""
        self._builder.block(text, verbatim=bool(self._preformatted), gap=gap)
        self._after_item = self._in_item


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    if not attributes:
        return False
    return "hidden" in attributes or bool(_NOT_SHOWN.search(attributes.get("style") or ""))


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
