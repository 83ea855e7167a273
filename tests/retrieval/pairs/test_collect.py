"""All kinds together: each pair once, none that asks for several things, and no more than wanted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from likewise.embedder.siamese.pairs import make_pairs as as_training_data
from likewise.embedder.siamese.tasks import loss_kind
from likewise.errors import DataError, UsageError
from likewise.retrieval.pairs.collect import make_pairs
from likewise.retrieval.pairs.documents import PairDocument

Read = Callable[..., PairDocument]

BODY = "Signing keys are kept in the vault of the {}, and nobody takes them out of it without asking."


@pytest.fixture
def documents(read: Read) -> dict[str, PairDocument]:
    texts = {
        "keys.md": f"# Signing keys\n\n{BODY.format('office')}\n\n## First steps\n\n{BODY.format('bank')}\n",
        "more.md": f"# Backup plans\n\n{BODY.format('town')}\n\n## First steps\n\n{BODY.format('farm')}\n\n"
        "Read [signing keys](keys.md) and [about the keys](keys.md).\n",
    }
    return {key: read(key, text) for key, text in texts.items()}


def test_counts_and_what_is_left_out(documents: dict[str, PairDocument]) -> None:
    found = make_pairs(documents)
    assert found.counts() == {"title": 2, "link": 1, "sentence": 2}
    # "First steps" stands in two documents; the link that says the title says nothing new.
    assert found.ambiguous["heading"] == 2 and found.repeated["link"] == 1
    assert found.documents == 2
    assert [pair.anchor for pair in found.pairs][:3] == ["Signing keys", "Backup plans", "about the keys"]


def test_kinds_limit_and_seed(documents: dict[str, PairDocument]) -> None:
    assert make_pairs(documents, kinds=["link", "title"]).counts() == {"title": 2, "link": 1}
    limited = make_pairs(documents, kinds=["title"], limit=1)
    assert limited.counts() == {"title": 1} and limited.over_limit["title"] == 1
    assert limited.pairs == make_pairs(documents, kinds=["title"], limit=1).pairs
    drawn = {make_pairs(documents, kinds=["title"], limit=1, seed=seed).pairs[0].anchor for seed in range(20)}
    assert drawn == {"Signing keys", "Backup plans"}


def test_no_document_gives_most_of_the_pairs(read: Read) -> None:
    words = [
        f"{a}{b}"
        for a in "bcdfghjklmnpq"
        for b in ("ard", "est", "ing", "old", "uck", "eep", "ay", "ow", "ill")
    ]
    text = "# Change log\n\n" + "\n\n".join(
        f"## About the {word} {number}\n\nThe {word} was mended by {number} people in that office today."
        for number, word in enumerate(words)
    )
    found = make_pairs({"log.md": read("log.md", text)}, kinds=["heading"])
    assert (len(words), found.counts(), found.over_limit["heading"]) == (117, {"heading": 100}, 17)
    lines = [pair.lines for pair in found.pairs]
    assert lines == sorted(lines)


def test_pairs_within_some_documents(documents: dict[str, PairDocument]) -> None:
    found = make_pairs(documents)
    assert {pair.kind for pair in found.of(["keys.md"])} == {"title", "sentence"}
    assert len(found.of(["keys.md"])) + len(found.of(["more.md"])) == len(found.pairs) - 1  # a link crosses
    assert found.of(["keys.md", "more.md"]) == found.pairs


def test_rows_are_training_data(documents: dict[str, PairDocument]) -> None:
    rows = [pair.to_json() for pair in make_pairs(documents).pairs]
    data = as_training_data(rows, loss_kind("ranking"), name="pairs")
    assert list(data.columns) == ["anchor", "positive"] and len(data) == len(rows)


def test_refusals(documents: dict[str, PairDocument], read: Read) -> None:
    with pytest.raises(UsageError, match="found paragraph"):
        make_pairs(documents, kinds=["paragraph"])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="found none"):
        make_pairs(documents, kinds=[])
    with pytest.raises(UsageError, match="at least 1, found 0"):
        make_pairs(documents, limit=0)
    with pytest.raises(DataError, match="no pair can be made from 1 documents"):
        make_pairs({"a.txt": read("a.txt", "Hello.")})
    with pytest.raises(DataError, match="no pair can be made from 0 documents"):
        make_pairs({})
