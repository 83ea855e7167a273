r"""The running text of a Word document part: an event handler that fills a `TextBuilder`.

Everything open is on one stack (paragraphs, and tables with their current cell), so text boxes in paragraphs
in cells in tables nest as they like. A form feed in a collected text stands for the beginning of a page
until it is written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from likewise.index.readers.compose import TextBuilder, clean
from likewise.index.readers.word_parts import Numbering, Styles, attribute, number, short

# Content that is not read: deleted and moved-away text, the older copy of a drawing, ruby annotations.
_SKIPPED = frozenset(("w:del", "w:moveFrom", "mc:Fallback", "w:rt", "w:instrText", "w:delText"))
_CHARACTERS = {"w:tab": "\t", "w:cr": "\n", "w:noBreakHyphen": "-", "w:ptab": "\t"}
_PAGE = "\f"
_BLANK = " \t\n"
_MAX_LIST_INDENT = 8


@dataclass(slots=True)
class _Block:
    text: str
    level: int = 0  # of a heading; 0 for other text
    verbatim: bool = False
    item: bool = False


@dataclass(slots=True)
class _Paragraph:
    parts: list[str] = field(default_factory=list)
    style: str = ""
    outline: int = -1
    list_id: str = ""
    list_level: int = -1
    after: list[_Block] = field(default_factory=list)  # of text boxes that are anchored in it


@dataclass(slots=True)
class _Table:
    rows: list[list[str]] = field(default_factory=list)
    cell: list[str] = field(default_factory=list)


class Body:
    """Reads a main part or a part of notes.

    Args:
        builder: Receives the text.
        styles: Of the document.
        numbering: Of the document; its counters go on from part to part.
        note_label: For a part of foot- or endnotes, what their numbers begin with; None for the main part.
    """

    def __init__(
        self, builder: TextBuilder, styles: Styles, numbering: Numbering, *, note_label: str | None = None
    ) -> None:
        self._builder = builder
        self._styles = styles
        self._numbering = numbering
        self._note_label = note_label
        self._open: list[_Paragraph | _Table] = []
        self._skipping = 0
        self._collecting = False
        self._note = ""
        self._pages: list[int] = []
        self._page_begins = False
        self._page_has_text = False
        self._after_item = False
        self.title = ""

    @property
    def page_starts(self) -> tuple[int, ...]:
        """Where pages begin."""
        return (0, *self._pages)

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        tag = short(name)
        if (
            self._skipping
            or tag in _SKIPPED
            or (tag in ("w:footnote", "w:endnote") and attribute(attributes, "type"))
        ):
            self._skipping += 1
            return
        top = self._open[-1] if self._open else None
        match tag:
            case "w:t" | "m:t":
                self._collecting = True
            case "w:p":
                self._open.append(_Paragraph())
            case "w:tbl":
                self._open.append(_Table())
            case "w:tr" if isinstance(top, _Table):
                top.rows.append([])
            case "w:tc" if isinstance(top, _Table):
                top.cell = []
            case "w:footnote" | "w:endnote":
                self._note = f"[^{self._note_label}{attribute(attributes, 'id')}]: "
            case _ if isinstance(top, _Paragraph) and tag:
                self._in_paragraph(tag, attributes, top)

    def _in_paragraph(self, tag: str, attributes: Mapping[str, str], paragraph: _Paragraph) -> None:
        match tag:
            case "w:pStyle":
                paragraph.style = attribute(attributes)
            case "w:outlineLvl":
                paragraph.outline = number(attribute(attributes))
            case "w:numId":
                paragraph.list_id = attribute(attributes)
            case "w:ilvl":
                paragraph.list_level = number(attribute(attributes))
            case "w:br":
                paragraph.parts.append(_PAGE if attribute(attributes, "type") == "page" else "\n")
            case "w:lastRenderedPageBreak" | "w:pageBreakBefore" if attribute(attributes) not in (
                "0",
                "false",
            ):
                paragraph.parts.append(_PAGE)
            case "w:footnoteReference":
                paragraph.parts.append(f"[^fn{attribute(attributes, 'id')}]")
            case "w:endnoteReference":
                paragraph.parts.append(f"[^en{attribute(attributes, 'id')}]")
            case "w:sym":
                paragraph.parts.append(_symbol(attribute(attributes, "char")))
            case _ if tag in _CHARACTERS and not attribute(attributes, "pos"):
                # With a position, `w:tab` defines a tab stop.
                paragraph.parts.append(_CHARACTERS[tag])

    def end(self, name: str) -> None:
        """An element ends."""
        if self._skipping:
            self._skipping -= 1
            return
        tag = short(name)
        top = self._open[-1] if self._open else None
        if tag in ("w:t", "m:t"):
            self._collecting = False
        elif tag == "w:p" and isinstance(top, _Paragraph):
            self._open.pop()
            self._emit(self._block(top))
            for block in top.after:
                self._emit(block)
        elif tag == "w:tc" and isinstance(top, _Table) and top.rows:
            top.rows[-1].append(" ".join(top.cell))
            top.cell = []
        elif tag == "w:tbl" and isinstance(top, _Table):
            self._open.pop()
            rows = [" | ".join(cells) for cells in top.rows if any(cell.strip() for cell in cells)]
            self._emit(_Block("\n".join(rows), verbatim=True))

    def text(self, text: str) -> None:
        """Characters inside the current element."""
        if self._collecting and not self._skipping and self._open:
            top = self._open[-1]
            if isinstance(top, _Paragraph):
                top.parts.append(clean(text))

    def finish(self) -> None:
        """The part has ended."""
        if self._page_begins and self._page_has_text:
            self._pages.append(self._builder.length)

    def _block(self, paragraph: _Paragraph) -> _Block:
        text = "".join(paragraph.parts)
        style = self._styles.resolved(paragraph.style)
        if not text.strip():
            return _Block(text)  # an empty paragraph counts for nothing, not even in a numbered list
        if self._note:
            text, self._note = self._note + text, ""
        outline = paragraph.outline if paragraph.outline >= 0 else style.outline
        level = outline + 1 if 0 <= outline < 9 else 0
        if style.name.lower() == "title":
            level = 1
            self.title = self.title or " ".join(text.replace(_PAGE, " ").split())
        list_id = paragraph.list_id or style.list_id
        depth = paragraph.list_level if paragraph.list_level >= 0 else max(0, style.list_level)
        label = self._numbering.next_label(list_id, depth) if list_id not in ("", "0") else ""
        if label:
            lead = text[: len(text) - len(text.lstrip())]
            indent = "" if level else "  " * min(depth, _MAX_LIST_INDENT)
            text = f"{lead}{indent}{label} {text.lstrip()}" if not level or label != "-" else text
        return _Block(text, level, verbatim="code" in style.name.lower(), item=bool(label) and not level)

    def _emit(self, block: _Block) -> None:
        """Hand a finished block to whatever it stands in."""
        top = self._open[-1] if self._open else None
        if isinstance(top, _Table):
            if block.text.strip(_BLANK):
                top.cell.append(block.text.strip(_BLANK).replace("\n", " "))
        elif isinstance(top, _Paragraph):
            top.after.append(block)
        else:
            self._write(block)

    def _write(self, block: _Block) -> None:
        text = block.text.strip(_BLANK) if not block.item else block.text.rstrip(_BLANK)
        plain = text.replace(_PAGE, "")
        if not plain.strip():
            self._page_begins = self._page_begins or _PAGE in text
            return
        if block.level:
            plain = plain.strip()
            self._builder.heading(plain, level=block.level)
        else:
            gap = "\n" if block.item and self._after_item else "\n\n"
            self._builder.block(plain, verbatim=block.verbatim, gap=gap)
        self._after_item = block.item
        offset = self._builder.length - len(plain)
        for order, piece in enumerate(text.split(_PAGE)):
            self._page_begins = self._page_begins or order > 0
            if piece.strip():
                self._text_at(offset)
            offset += len(piece)

    def _text_at(self, offset: int) -> None:
        """Text follows: if breaks came before it, they are one, as Word puts one of its own behind each."""
        if self._page_begins and self._page_has_text:
            self._pages.append(min(offset, self._builder.length))
        self._page_begins, self._page_has_text = False, True


def _symbol(code: str) -> str:
    """A character by its code, "" for the private ones of symbol fonts, which mean nothing elsewhere."""
    try:
        value = int(code, 16)
    except ValueError:
        return ""
    return chr(value) if 0x20 <= value < 0xD800 else ""
