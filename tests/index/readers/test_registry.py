from __future__ import annotations

from collections.abc import Callable

import pytest

from likewise.index.readers.base import Reader, ReaderLimits, Source
from likewise.index.readers.registry import current_readers, no_reader, normalize_language, readers
from likewise.index.readers.sniff import family, sniff
from likewise.index.records import DocumentState, Extraction, Skip

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def test_every_format_has_one_reader() -> None:
    names = [reader.name for reader in readers()]
    assert names == sorted(set(names))
    suffixes = [suffix for reader in readers() for suffix in reader.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert all(suffix == suffix.lower() and suffix[0] == "." for suffix in suffixes)
    assert {reader.id for reader in readers()} < current_readers()


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        ("a.txt", "plain"), ("README", "plain"), ("a.md", "markdown"), ("a.MD", "markdown"), ("a.rst", "rst"),
        ("a.html", "html"), ("a.py", "code"), ("Makefile", "code"),
        ("a.csv", "delimited"),
        ("a.json", "json"), ("a.jsonl", "json"),
        ("a.unknown", "plain"), ("noname", "plain"), (".profile", "plain"),
    ],
)  # fmt: skip
def test_text_is_read_by_its_name(extract: Callable[..., Extraction], name: str, reader: str) -> None:
    assert extract("Keys are rotated.", name).reader.partition("/")[0] == reader


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.py", "a.csv", "a.unknown", "noname", "a.pdf", "a.docx"])
def test_a_picture_is_a_picture_whatever_its_name(skip: Callable[..., Skip], name: str) -> None:
    found = skip(PNG, name)
    assert found == Skip(
        DocumentState.UNSUPPORTED, "is a PNG image, for which there is no reader", no_reader()
    )


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.json", "a.ipynb", "a.unknown"])
def test_nameless_binary_is_refused(skip: Callable[..., Skip], name: str) -> None:
    assert skip(bytes(range(256)) * 40, name).state is DocumentState.UNSUPPORTED


@pytest.mark.parametrize("name", ["a.pdf", "a.docx"])
def test_garbage_under_the_name_of_a_document_is_damage(skip: Callable[..., Skip], name: str) -> None:
    found = skip(bytes(range(256)) * 40, name)
    assert found.state is DocumentState.FAILED
    assert found.reason == f"is damaged: no {name[2:]} file begins like this"


def test_families_without_a_reader_are_named(
    skip: Callable[..., Skip], make_zip: Callable[..., bytes]
) -> None:
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500
    files = {
        "Excel workbook": make_zip({"[Content_Types].xml": "", "xl/workbook.xml": ""}),
        "PowerPoint presentation": make_zip({"[Content_Types].xml": "", "ppt/presentation.xml": ""}),
        "OpenDocument text document": make_zip({"mimetype": "application/vnd.oasis.opendocument.text"}),
        "EPUB book": make_zip({"mimetype": "application/epub+zip"}),
        "zip archive": make_zip({"a.txt": "x"}),
        "Word 97-2003 document": ole + "WordDocument".encode("utf-16-le"),
        "Rich Text Format document": b"{\\rtf1 x}",
    }
    for name, data in files.items():
        found = skip(data, "a.bin")
        assert found.state is DocumentState.UNSUPPORTED
        assert name in found.reason
    assert skip("From: a\n\nx", "a.eml").reason == "is an e-mail message, for which there is no reader"
    assert skip("<svg/>", "a.svg").reason == "is an SVG image, for which there is no reader"


def test_nothing_is_empty(skip: Callable[..., Skip]) -> None:
    for name in ("a.txt", "a.pdf", "a.docx", "noname"):
        assert skip(b"", name).state is DocumentState.EMPTY
    assert skip(" \n\t\n", "a.md").state is DocumentState.EMPTY


def test_more_text_than_the_limit_is_too_large() -> None:
    from likewise.index.readers.registry import read

    outcome = read(Source(b"x" * 101, suffix=".txt", max_characters=100))
    assert isinstance(outcome, Skip)
    assert (outcome.state, outcome.reason) == (
        DocumentState.TOO_LARGE,
        "holds more than 100 characters of text",
    )


def test_a_new_reader_changes_what_stands_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from likewise.index.readers import registry

    before = no_reader()
    added = Reader(
        name="xlsx", version=1, read=lambda source: Extraction("x", ""), kinds=frozenset(("xlsx",))
    )
    monkeypatch.setattr(registry, "readers", lambda: (*readers(), added))
    assert no_reader() != before
    assert "xlsx/1" in current_readers()


def test_the_language_is_detected_where_none_is_declared(extract: Callable[..., Extraction]) -> None:
    assert extract("How do I rotate a signing key that has leaked?").language == "en"
    assert extract("如何輪替簽署金鑰？").language == "zh"
    assert extract("如何轮换签名密钥？").language == "zh"


@pytest.mark.parametrize(
    ("tag", "code"), [("zh-Hant-TW", "zh"), ("en_US.UTF-8", "en"), ("x-klingon", ""), ("und", ""), ("", "")]
)
def test_language_tags(tag: str, code: str) -> None:
    assert normalize_language(tag) == code


def test_sniffing_never_fails_on_a_prefix(make_docx: Callable[..., bytes]) -> None:
    data = make_docx("<w:p/>")
    for length in range(0, len(data), 7):
        assert family(sniff(data[:length])) in ("", "zip archive", "Word document")


@pytest.mark.parametrize("name", ["max_bytes", "max_characters", "seconds", "memory_bytes"])
def test_limits_are_positive(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        ReaderLimits(**{name: 0})
