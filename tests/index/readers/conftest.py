"""Documents made on the spot, so that no test needs a binary file in the repository."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from likewise.index.readers.base import Source
from likewise.index.readers.registry import read
from likewise.index.records import Extraction, Skip

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


@pytest.fixture
def extract() -> Callable[..., Extraction]:
    """Read bytes or text as if they were a file of this name, which must succeed."""

    def extract(data: bytes | str, name: str = "a.txt") -> Extraction:
        outcome = read(_source(data, name))
        assert isinstance(outcome, Extraction), outcome
        return outcome

    return extract


@pytest.fixture
def skip() -> Callable[..., Skip]:
    """Read bytes or text as if they were a file of this name, which must end in another state than ok."""

    def skip(data: bytes | str, name: str = "a.txt") -> Skip:
        outcome = read(_source(data, name))
        assert isinstance(outcome, Skip), outcome
        return outcome

    return skip


def _source(data: bytes | str, name: str) -> Source:
    dot = name.rfind(".")
    content = data.encode() if isinstance(data, str) else data
    return Source(content, suffix=name[dot:].lower() if dot > 0 else "", name=name.lower())


@pytest.fixture
def make_zip() -> Callable[[Mapping[str, bytes | str]], bytes]:
    """A zip archive of these members."""
    return _zip


def _zip(members: Mapping[str, bytes | str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def make_docx() -> Callable[..., bytes]:
    """A Word document with this body, and optionally other parts."""

    def make(body: str, **parts: Any) -> bytes:
        kinds = [kind for kind in ("styles", "numbering", "footnotes", "endnotes") if kind in parts]
        relations = "".join(
            f'<Relationship Id="r{number}" Type="{_TYPES}/{kind}" Target="{kind}.xml"/>'
            for number, kind in enumerate(kinds)
        )
        members: dict[str, bytes | str] = {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}">'
            f'<Relationship Id="a" Type="{_TYPES}/officeDocument" Target="word/document.xml"/>'
            f'<Relationship Id="b" Type="{_TYPES}/extended-properties" Target="docProps/app.xml"/>'
            f'<Relationship Id="c" Type="{_TYPES}/metadata/core-properties" Target="docProps/core.xml"/>'
            "</Relationships>",
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{_PACKAGE}">{relations}</Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{W}" {parts.get("namespaces", "")}>'
            f"<w:body>{body}</w:body></w:document>",
        }
        for kind in kinds:
            members[f"word/{kind}.xml"] = f'<w:{kind} xmlns:w="{W}">{parts[kind]}</w:{kind}>'
        if "pages" in parts:
            members["docProps/app.xml"] = f"<Properties><Pages>{parts['pages']}</Pages></Properties>"
        if "core" in parts:
            members["docProps/core.xml"] = f"<coreProperties>{parts['core']}</coreProperties>"
        return _zip(members)

    return make


@pytest.fixture
def make_pdf() -> Callable[..., bytes]:
    """A PDF with one page for each content stream, and optionally an outline of (title, page from 0)."""

    def make(contents: Sequence[str], *, outline: Sequence[tuple[str, int]] = (), info: str = "") -> bytes:
        pages = len(contents)
        first_outline = 4 + 2 * pages
        objects = [
            "<< /Type /Catalog /Pages 2 0 R" + (f" /Outlines {first_outline} 0 R" if outline else "") + " >>",
            f"<< /Type /Pages /Count {pages} /Kids [{' '.join(f'{4 + 2 * n} 0 R' for n in range(pages))}] >>",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        ]
        for number, content in enumerate(contents):
            objects.append(
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {5 + 2 * number} 0 R "
                "/Resources << /Font << /F1 3 0 R >> >> >>"
            )
            objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
        if outline:
            last = first_outline + len(outline)
            objects.append(f"<< /Type /Outlines /First {first_outline + 1} 0 R /Last {last} 0 R >>")
            for number, (title, page) in enumerate(outline):
                following = f"/Next {first_outline + number + 2} 0 R" if number + 1 < len(outline) else ""
                target = f"/Dest [{4 + 2 * page} 0 R /Fit]"
                objects.append(f"<< /Title ({title}) /Parent {first_outline} 0 R {target} {following} >>")
        objects.append(f"<< {info} >>")
        data = b"%PDF-1.4\n"
        offsets = []
        for number, body in enumerate(objects, 1):
            offsets.append(len(data))
            data += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
        table = len(data)
        data += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
        data += b"".join(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
        trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>\n"
        return data + f"{trailer}startxref\n{table}\n%%EOF\n".encode()

    return make


@pytest.fixture
def lines_of_text() -> Callable[..., str]:
    """A PDF content stream that shows these lines from top to bottom."""

    def stream(*lines: str) -> str:
        shown = " ".join(f"({line}) Tj 0 -20 Td" for line in lines)
        return f"BT /F1 12 Tf 50 700 Td {shown} ET"

    return stream
