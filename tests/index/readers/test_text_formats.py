"""reStructuredText, code, tables and JSON: formats whose text is the file itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from likewise.index.records import Extraction

Extract = Callable[..., Extraction]


def pieces(found: Extraction) -> list[str]:
    """The text cut at its breaks."""
    cuts = [0, *found.breaks, len(found.text)]
    return [found.text[start:end] for start, end in pairwise(cuts)]


RST = """\
.. _keys:

=============
 Signing keys
=============

:author: Ann
:lang: en

輪替金鑰
========

Like this::

    Not a title
    -----------

.. code-block:: python

    x = 1

Using ``rotate`` with :ref:`keys <keys>`
----------------------------------------

.. a comment

   with a title
   ------------

A list of `links <https://example.org>`_
----------------------------------------

=====  =====
a      b
=====  =====
1      2
=====  =====

Too short
---

Last
====
"""


def test_rst_titles_and_verbatim_blocks(extract: Extract) -> None:
    found = extract(RST, "a.rst")
    assert found.text == RST
    assert [(h.level, h.title) for h in found.headings] == [
        (1, "Signing keys"),
        (2, "輪替金鑰"),
        (3, "Using rotate with keys"),
        (3, "A list of links"),
        (2, "Last"),
    ]
    assert found.headings[0].span.of(RST) == "=============\n Signing keys\n============="
    assert found.title == "Signing keys"
    assert found.metadata == {"author": "Ann", "lang": "en"}
    assert [span.of(RST).split("\n")[0].strip() for span in found.verbatim] == [
        "Not a title",
        ".. code-block:: python",
        "=====  =====",
    ]


@pytest.mark.data
def test_rst_titles_of_real_documents(data_dir: Path, extract: Extract) -> None:
    """Every adornment line of these documents underlines a title, one in a table apart."""
    for file in sorted((data_dir / "docs-sqlite-utils-rst").glob("*.rst")):
        text = file.read_text(encoding="utf-8")
        found = extract(text, file.name)
        adornments = len(re.findall(r"^(?:={4,}|-{4,}|~{4,}|\+{4,})$", text, re.M))
        assert len(found.headings) >= adornments - 1, file.name
        assert found.title == found.headings[0].title


PYTHON = '''\
"""Keys."""

import os

# Rotates a key.
# Twice.
@cached
def rotate(key):
    return key

class Key:
    def inner(self):
        pass

async def main(): ...
'''


def test_code_is_cut_before_definitions_with_their_comments(extract: Extract) -> None:
    found = extract(PYTHON, "keys.py")
    assert found.text == PYTHON
    assert [piece.split("\n")[0] for piece in pieces(found)] == [
        '"""Keys."""',
        "# Rotates a key.",
        "class Key:",
        "async def main(): ...",
    ]
    assert found.verbatim[0].of(found.text) == PYTHON
    assert found.metadata == {"code": "python"}


@pytest.mark.parametrize(
    ("name", "code", "cuts"),
    [
        ("a.rs", "use x;\n\n/// Doc.\n#[inline]\npub fn f() {\n}\n\nimpl K {\n}\n", ["/// Doc.", "impl K {"]),
        ("a.go", "package a\n\n// F.\nfunc F() {\n}\n\ntype K struct {\n}\n", ["// F.", "type K struct {"]),
        ("a.ts", "import x\n\nexport class K {\n}\n\nconst f = () => {\n}\n", ["export class", "const f"]),
        ("a.c", "#include <x.h>\n\nstatic int f(int a)\n{\n  return a;\n}\n", ["static int f(int a)"]),
        ("a.rb", "x = 1\n\ndef f\nend\n", ["def f"]),
        ("a.sh", "set -e\n\nrun() {\n  x\n}\n", ["run() {"]),
        ("a.sql", "-- Keys\nSELECT 1;\n\n-- Table\ncreate table k (a);\n", ["-- Table"]),
        ("a.toml", "x = 1\n\n[tool]\ny = 2\n", ["[tool]"]),
        ("a.yaml", "a: 1\nb:\n  c: 2\n", ["b:"]),
        ("Makefile", "X := 1\n\nall: a\n\tcc\n", ["all: a"]),
        ("run", "#!/usr/bin/env python3\n\ndef f():\n    pass\n", ["def f():"]),
    ],
)  # fmt: skip
def test_languages(extract: Extract, name: str, code: str, cuts: list[str]) -> None:
    found = extract(code, name)
    assert found.reader.startswith("code/")
    found_cuts = pieces(found)[1:]
    assert len(found_cuts) == len(cuts)
    assert all(piece.startswith(cut) for piece, cut in zip(found_cuts, cuts, strict=True))


def test_the_language_of_comments_is_detected(extract: Extract) -> None:
    assert extract("# 每九十天輪替一次簽署金鑰\nx = rotate(key)\n", "a.py").language == "zh"


def test_a_coding_cookie_is_believed(extract: Extract) -> None:
    found = extract("# -*- coding: big5 -*-\n# 金鑰\n".encode("big5"), "a.py")
    assert found.text.endswith("# 金鑰\n")
    assert found.encoding == "big5"


def test_csv_records_and_header(extract: Extract) -> None:
    text = 'name,note\r\nAnn,"two\r\nlines"\r\n\r\n王小明,金鑰\r\n'
    found = extract(text, "a.csv")
    assert found.text == text
    assert pieces(found) == ["name,note\r\n", 'Ann,"two\r\nlines"\r\n\r\n', "王小明,金鑰\r\n"]
    assert found.metadata == {"columns": ["name", "note"]}
    assert [(h.title, h.span.of(text)) for h in found.headings] == [("name, note", "name,note")]


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("a.tsv", "a\tb, c\n1\t2\n", ["a", "b, c"]),
        ("a.csv", "a;b\n1,5;2\n3,5;4\n", ["a", "b"]),
        ("a.csv", "1,2\n3,4\n", None),
        ("a.csv", "a,a\n1,2\n", None),
        ("a.csv", "姓名,年齡\n王小明,9\n", ["姓名", "年齡"]),
    ],
)
def test_csv_columns(extract: Extract, name: str, text: str, columns: list[str] | None) -> None:
    assert extract(text, name).metadata.get("columns") == columns


def test_csv_with_one_cell_of_megabytes(extract: Extract) -> None:
    found = extract('a,b\n"' + "x" * 3_000_000 + '",1\n2,3\n', "a.csv")
    assert len(found.breaks) == 2


def test_json_is_cut_at_its_items(extract: Extract) -> None:
    text = '[{"a": "x, [y]"}, {"b": [1, 2]}, 3]'
    assert pieces(extract(text, "a.json")) == ['[{"a": "x, [y]"},', ' {"b": [1, 2]},', " 3]"]


def test_json_lines_are_records(extract: Extract) -> None:
    assert pieces(extract('{"a": 1}\n\n{"b": 2}\n', "a.jsonl")) == ['{"a": 1}\n\n', '{"b": 2}\n']


def test_json_escapes_can_be_searched_for_and_lines_stay(extract: Extract) -> None:
    found = extract(r'{"a": "\u91d1\u9470 \ud83d\ude00",' "\n" r'"b": "\u0022 \\u91d1 \ud83d"}', "a.json")
    assert found.text == '{"a": "金鑰 😀",\n' r'"b": "\u0022 \\u91d1 \ud83d"}'
    assert len(found.notes) == 1


def test_json_need_not_be_valid(extract: Extract) -> None:
    assert extract('{"a": [[[ "unclosed ', "a.json").text == '{"a": [[[ "unclosed '


def test_form_feeds_cut_plain_text(extract: Extract) -> None:
    assert pieces(extract("one\n\ftwo\n", "a.txt")) == ["one\n\f", "two\n"]
