from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from likewise.index.records import DocumentState, Extraction, Skip


def notebook(*cells: object, **rest: object) -> str:
    return json.dumps({"cells": cells, "nbformat": 4, **rest})


def test_cells_outputs_and_headings(extract: Callable[..., Extraction]) -> None:
    found = extract(
        notebook(
            {"cell_type": "markdown", "source": ["# 金鑰手冊\n", "\n", "Rotate."]},
            {
                "cell_type": "code",
                "source": "rotate(key)",
                "outputs": [
                    {"output_type": "stream", "text": ["done\n"]},
                    {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}},
                    {"output_type": "error", "ename": "KeyError", "evalue": "'k'", "traceback": ["\x1b[31m"]},
                ],
            },
            {"cell_type": "raw", "source": "raw"},
            metadata={"language_info": {"name": "python"}},
        ),
        "a.ipynb",
    )
    assert found.text == "# 金鑰手冊\n\nRotate.\n\nrotate(key)\n\ndone\n\n<Figure>\nKeyError: 'k'\n\nraw\n"
    assert [(h.level, h.title, h.span.of(found.text)) for h in found.headings] == [
        (1, "金鑰手冊", "# 金鑰手冊")
    ]
    assert [span.of(found.text) for span in found.verbatim] == [
        "rotate(key)",
        "done\n\n<Figure>\nKeyError: 'k'",
    ]
    assert found.title == "金鑰手冊"
    assert found.metadata == {"code": "python"}
    assert len(found.breaks) == 2


def test_long_outputs_are_shortened_and_noted(extract: Callable[..., Extraction]) -> None:
    output = {"output_type": "stream", "text": "x" * 100_000}
    found = extract(notebook({"cell_type": "code", "source": "f()", "outputs": [output]}), "a.ipynb")
    assert len(found.text) < 2100
    assert len(found.notes) == 1


def test_old_format(extract: Callable[..., Extraction]) -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Old"},
        {"cell_type": "code", "input": "1+1", "outputs": [{"text": "2"}]},
    ]
    found = extract(json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}), "a.ipynb")
    assert found.text == "Old\n\n1+1\n\n2\n"
    assert [(h.level, h.title) for h in found.headings] == [(2, "Old")]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("{", DocumentState.FAILED),
        ("[]", DocumentState.FAILED),
        ("{}", DocumentState.EMPTY),
        ('{"cells": [1, {"cell_type": 2, "source": {}}, null], "metadata": []}', DocumentState.EMPTY),
        ('{"cells": {"a": 1}, "worksheets": [null]}', DocumentState.EMPTY),
    ],
)
def test_what_is_no_notebook(skip: Callable[..., Skip], text: str, state: DocumentState) -> None:
    assert skip(text, "a.ipynb").state is state


@pytest.mark.data
def test_real_notebooks(data_dir: Path, extract: Callable[..., Extraction]) -> None:
    for file in sorted((data_dir / "notebooks-txtai").glob("*.ipynb")):
        found = extract(file.read_bytes(), file.name)
        assert found.title, file.name
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        assert len(found.breaks) >= len([cell for cell in cells if "".join(cell["source"]).strip()]) - 1
