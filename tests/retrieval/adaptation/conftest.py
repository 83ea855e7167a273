"""A folder of documents that can be told apart, and a tiny encoder that can be trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ...tiny_bert import save_tiny_bert

WORDS = ["key", "lock", "door", "vault", "safe", "chain", "bolt", "gate"]
WORDS += ["badge", "alarm", "guard", "camera", "fence", "window", "hinge", "cable"]
PLACES = ["harbour", "castle", "station", "library", "museum"]
PLACES += ["factory", "airport", "school", "hospital", "market"]


def sentence(number: int, turn: int) -> str:
    a, b = WORDS[(number + turn) % len(WORDS)], WORDS[(3 * number + 2 * turn + 5) % len(WORDS)]
    place = PLACES[(number * 7 + turn) % len(PLACES)]
    officer = number * 10 + turn
    return f"The {a} of the {place} is checked with the {b} by officer number {officer} every morning."


def write(folder: Path, count: int = 40) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        word, place = WORDS[number % len(WORDS)], PLACES[(number * 3) % len(PLACES)]
        text = f"# The {word} at the {place} {number}\n\n"
        for turn in range(3):
            text += f"## Rule {number * 3 + turn} for the {WORDS[(number + turn + 4) % len(WORDS)]} there\n\n"
            text += " ".join(sentence(number, turn * 3 + n) for n in range(3)) + "\n\n"
        (folder / f"{number:02}.md").write_text(text, encoding="utf-8")


@pytest.fixture(scope="session")
def write_documents() -> Callable[..., None]:
    """Writes documents into a folder: `write_documents(folder, count=40)`."""
    return write


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of one layer with random weights and a vocabulary of its own."""
    from tokenizers import BertWordPieceTokenizer

    words = BertWordPieceTokenizer()
    texts = [sentence(number, turn) for number in range(40) for turn in range(9)] + ["rule there for at #"]
    words.train_from_iterator(texts, vocab_size=300, show_progress=False)
    return save_tiny_bert(tmp_path_factory.mktemp("tiny-encoder"), words)
