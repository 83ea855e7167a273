"""The public names are a promise: adding one is a decision, and this file is where it is written down."""

from __future__ import annotations

import subprocess
import sys

import pytest

import likewise

PUBLIC = [
    "Encoder",
    "HashEncoder",
    "Index",
    "LikewiseError",
    "Retriever",
    "__version__",
    "answer",
    "pack_context",
]


def test_public_names_are_these_and_sorted() -> None:
    assert likewise.__all__ == PUBLIC
    assert sorted(PUBLIC) == PUBLIC
    assert dir(likewise) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    value = getattr(likewise, name)
    if name != "__version__":
        assert value.__doc__, name
        assert value.__module__.startswith("likewise."), name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Retreiver'"):
        likewise.Retreiver  # noqa: B018


def test_a_static_reader_sees_the_same_names() -> None:
    """`from likewise import *` gives what `__all__` promises, in a fresh interpreter."""
    code = "from likewise import *; print(sorted(n for n in dir() if not n.startswith('_')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([name for name in PUBLIC if not name.startswith("_")])
