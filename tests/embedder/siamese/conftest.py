from __future__ import annotations

import pytest

from .toy_pairs import WORDS, rows, write


@pytest.fixture
def scored(tmp_path):
    return write(tmp_path / "scored.jsonl", rows())


@pytest.fixture
def asked(tmp_path):
    """Questions with answers and a negative."""
    content = [
        {
            "query": f"what is {word} {n}",
            "answer": f"{word} {n} is this",
            "negative_1": f"{WORDS[(at + 1) % 10]} {n}",
        }
        for at, word in enumerate(WORDS)
        for n in range(4)
    ]
    return write(tmp_path / "asked.jsonl", content)


@pytest.fixture(scope="session")
def base(plain_checkpoint):
    return plain_checkpoint("bert")
