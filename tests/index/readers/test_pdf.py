from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from likewise.index.records import DocumentState, Extraction, Skip

Extract = Callable[..., Extraction]


def test_pages_metadata_and_outline(
    extract: Extract, make_pdf: Callable[..., bytes], lines_of_text: Callable[..., str]
) -> None:
    data = make_pdf(
        [
            lines_of_text("Signing keys", "Keys are rotated."),
            "",
            lines_of_text("2.1 Rotation", "Every ninety days.", "Rotation of all."),
        ],
        outline=[("Signing keys", 0), ("Rotation", 2), ("Nowhere", 2)],
        info="/Title (Key handbook) /Author (Ann) /CreationDate (D:20250131120000)",
    )
    found = extract(data, "a.pdf")
    assert found.text == (
        "Signing keys\nKeys are rotated.\n2.1 Rotation\nEvery ninety days.\nRotation of all.\n"
    )
    third = found.text.index("2.1")
    assert found.page_starts == (0, third, third)
    assert found.title == "Key handbook"
    assert found.metadata == {"author": "Ann", "created": "2025-01-31"}
    assert [(h.level, h.title, h.span.of(found.text)) for h in found.headings] == [
        (1, "Signing keys", "Signing keys"),
        (1, "Rotation", "2.1 Rotation"),
    ]


def test_an_outline_that_is_mostly_not_in_the_text_is_left_out(
    extract: Extract, make_pdf: Callable[..., bytes], lines_of_text: Callable[..., str]
) -> None:
    data = make_pdf(
        [lines_of_text("Keys", "Text.")], outline=[("Keys", 0), ("Sheet1", 0), ("C:/scan.pdf", 0)]
    )
    assert extract(data, "a.pdf").headings == ()


@pytest.mark.parametrize("title", ["Microsoft Word - keys.doc", "untitled", "keys.indd"])
def test_titles_that_programs_make_up_are_left_out(
    extract: Extract, make_pdf: Callable[..., bytes], lines_of_text: Callable[..., str], title: str
) -> None:
    assert extract(make_pdf([lines_of_text("x")], info=f"/Title ({title})"), "a.pdf").title == ""


def test_a_pdf_under_another_name_is_a_pdf(
    extract: Extract, make_pdf: Callable[..., bytes], lines_of_text: Callable[..., str]
) -> None:
    data = make_pdf([lines_of_text("Keys")])
    assert extract(data, "notes.txt").reader.startswith("pdf/")
    assert extract(b"junk before\n" + data, "notes").reader.startswith("pdf/")


def test_text_about_pdf_is_text(extract: Extract) -> None:
    assert extract("A file begins with %PDF-1.7 as its first bytes.", "a.txt").reader.startswith("plain/")


def test_pages_without_text(skip: Callable[..., Skip], make_pdf: Callable[..., bytes]) -> None:
    assert skip(make_pdf(["", ""]), "a.pdf").state is DocumentState.EMPTY
    picture = "q 100 0 0 100 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x7f EI Q"
    scanned = skip(make_pdf([picture, picture]), "a.pdf")
    assert (scanned.state, scanned.reason) == (DocumentState.NEEDS_OCR, "has 2 pages of pictures and no text")


def test_a_scanned_page_among_others_is_noted(
    extract: Extract, make_pdf: Callable[..., bytes], lines_of_text: Callable[..., str]
) -> None:
    picture = "q 100 0 0 100 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x7f EI Q"
    found = extract(make_pdf([lines_of_text("Keys"), picture]), "a.pdf")
    assert found.notes == ("no text, only pictures: page 2",)


@pytest.mark.parametrize("cut", [9, 60, 200])
def test_a_damaged_file_fails_with_a_reason(
    skip: Callable[..., Skip], make_pdf: Callable[..., bytes], lines_of_text: Callable[..., str], cut: int
) -> None:
    found = skip(make_pdf([lines_of_text("Keys")])[:cut], "a.pdf")
    assert found.state is DocumentState.FAILED
    assert found.reason.startswith("is damaged: ")
    assert found.reader.startswith("pdf/")


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "state"),
    [
        ("pypdf/encrypted-file.pdf", DocumentState.ENCRYPTED),
        ("pypdf/encryption/r5-user-password.pdf", DocumentState.ENCRYPTED),
        ("docling/ocr/nemotron_multipage.pdf", DocumentState.NEEDS_OCR),
        ("pikepdf/congress.pdf", DocumentState.NEEDS_OCR),
        ("pikepdf/fuzz/378014596.pdf", DocumentState.FAILED),
    ],
)
def test_states_of_real_files(
    data_dir: Path, skip: Callable[..., Skip], file: str, state: DocumentState
) -> None:
    assert skip((data_dir / "odd-docs" / file).read_bytes(), "a.pdf").state is state


@pytest.mark.data
def test_real_files(data_dir: Path, extract: Extract) -> None:
    folder = data_dir / "odd-docs"
    outlined = extract((folder / "pikepdf/outlines.pdf").read_bytes(), "a.pdf")
    assert [(h.level, h.title) for h in outlined.headings][:4] == [
        (1, "One"),
        (2, "One-A"),
        (2, "One-B"),
        (3, "One-B-I"),
    ]
    hyphenated = extract((folder / "pikepdf/sandwich.pdf").read_bytes(), "a.pdf")
    assert "function" in hyphenated.text
    part = extract((folder / "pypdf/imagemagick-images.pdf").read_bytes(), "a.pdf")
    assert len(part.page_starts) == 6
