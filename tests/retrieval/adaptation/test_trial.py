"""The comparison of encoders, with encoders that need no model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from likewise.embedder.hash_encoder import HashEncoder
from likewise.embedder.siamese.miner import MiningSettings
from likewise.errors import DataError
from likewise.index.index import Index
from likewise.retrieval.adaptation.feedback import feedback_search
from likewise.retrieval.adaptation.negatives import mine_index
from likewise.retrieval.adaptation.split import split_documents
from likewise.retrieval.adaptation.trial import DENSE, FEEDBACK, HYBRID, mean, trial, values
from likewise.retrieval.grammar import literal
from likewise.retrieval.pairs.collect import make_pairs
from likewise.retrieval.pairs.documents import IndexDocuments
from likewise.retrieval.pairs.records import TextPair
from likewise.retrieval.search import Retriever


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, write_documents: Callable[..., None]) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("documents")
    write_documents(folder)
    with Index.open(folder / ".likewise", encoder=HashEncoder(dimension=64)) as opened:
        opened.sync([folder])
        yield opened


def quiet(phase: str, done: int, total: int | None = None) -> None:
    assert phase and done >= 0


def test_feedback_adds_the_mean_of_the_first_hits(index: Index) -> None:
    query = "the alarm at the harbour"
    found = feedback_search(index)(query, 5)
    with index.view() as view:
        best = [hit.passage_id for hit in Retriever(index).search(literal(query), k=3)]
        ids = view.everything()
        vectors = view.vectors(ids)
        mixed = index.encoder.encode_queries([query])[0] + view.vectors(best).mean(axis=0)
    cosines = vectors @ mixed / np.linalg.norm(mixed)
    assert [hit.passage_id for hit in found] == ids[np.lexsort((ids, -cosines))][:5].tolist()
    np.testing.assert_allclose([hit.score for hit in found], np.sort(cosines)[::-1][:5], atol=1e-6)
    assert [hit.rank for hit in found] == [1, 2, 3, 4, 5]


def test_encoders_are_asked_the_same_questions(index: Index) -> None:
    with index.view() as view:
        split = split_documents([row.key for row in view.documents()])
        before = view.passage_count
    with trial(
        index, choosing=split.choosing, verdict=split.verdict, questions=30, most_passages=60, progress=quiet
    ) as place:
        assert 6 <= len(place.choosing.queries) <= 10 and len(place.verdict.queries) == 20
        for questions, part in ((place.choosing, split.choosing), (place.verdict, split.verdict)):
            assert {answer.partition("#")[0] for each in questions.qrels.values() for answer in each} <= part
        # The copy is small, and what is asked about is in it.
        assert place.passages <= 60 < before
        base = place.base(place.verdict, quiet)
        assert set(base) == {DENSE, HYBRID, FEEDBACK}
        with place.candidate(HashEncoder(dimension=64), quiet) as ask:
            same = ask(place.verdict)
        assert values(same[DENSE]) == values(base[DENSE]) and set(same) == {DENSE, HYBRID}
        with place.candidate(HashEncoder(dimension=4), quiet) as ask:
            other = ask(place.verdict)
        assert values(other[DENSE]) != values(base[DENSE]) and mean(other[HYBRID]) > 0
    with index.view() as view:
        assert view.passage_count == before


def test_nothing_to_ask_about(index: Index) -> None:
    nothing: frozenset[str] = frozenset()
    with (
        pytest.raises(DataError, match="no question can be made from the 0 documents"),
        trial(index, choosing=nothing, verdict=nothing, questions=9, most_passages=9, progress=quiet),
    ):
        raise AssertionError("not reached")


def test_negatives_are_passages_of_other_documents(index: Index) -> None:
    settings = MiningSettings(negatives=2, first=1, last=10, relative_margin=None)
    with index.view() as view:
        documents = IndexDocuments(view)
        within = split_documents(list(documents)).learned
        pairs = make_pairs(documents, kinds=["title", "heading"]).of(within)
        seen: list[tuple[int, int]] = []
        mined, rest = mine_index(
            view, index.encoder, pairs, settings, within=within, progress=lambda *at: seen.append(at)
        )
        assert mined is not None and rest is None
        texts = {
            f"{p.title} > {p.passage.headings[-1]}": p.key
            for key in documents
            for p in view.document_passages(key)
        }
        vectors = {pair.anchor: index.encoder.encode_queries([pair.anchor])[0] for pair in pairs}
        for row in range(len(mined)):
            anchor = mined.columns["anchor"][row]
            own = {pair.source for pair in pairs if pair.anchor == anchor}
            one, two = (mined.columns[f"negative_{n}"][row] for n in (1, 2))
            for negative in (one, two):
                key = next(key for line, key in texts.items() if negative.startswith(line))
                assert key not in own and key in within
            near, far = index.encoder.encode_passages([one, two]) @ vectors[anchor]
            assert near >= far - 1e-6
    assert seen[-1] == (len(pairs), len(pairs)) and len(mined) == len(pairs)


def test_translations_of_the_own_document_are_no_negatives(tmp_path: Path) -> None:
    text = (
        "# Signing keys\n\nRotate the signing keys of the vault once a year, and ask the owner before that."
    )
    for key in ("en/keys.md", "zh/keys.md"):
        (tmp_path / key).parent.mkdir(exist_ok=True)
        (tmp_path / key).write_text(text if key.startswith("en") else text.replace("once", "one time"))
    (tmp_path / "en/lunch.md").write_text(
        "# Lunch hours\n\nLunch is served at noon for all on the second floor."
    )
    with Index.open(tmp_path / ".likewise", encoder="hash") as index:
        index.sync([tmp_path])
        with index.view() as view:
            documents = IndexDocuments(view)
            pair = TextPair("title", "signing keys", "Rotate", "en/keys.md", (3, 3), "en/keys.md", 1)
            loose = MiningSettings(first=1, last=10, relative_margin=None)
            mined, _ = mine_index(view, index.encoder, [pair], loose, within=frozenset(documents))
    assert mined is not None  # for the type checker: the next line asks for one
    [negative] = mined.columns["negative_1"]
    assert negative.startswith("Lunch hours")


def test_a_margin_keeps_what_is_as_near_as_the_positive(index: Index) -> None:
    with index.view() as view:
        documents = IndexDocuments(view)
        within = frozenset(documents)
        pairs = make_pairs(documents, kinds=["title"]).pairs
        strict = MiningSettings(first=1, last=10, relative_margin=0.05)
        loose = MiningSettings(first=1, last=10, relative_margin=None)
        close, rest = mine_index(view, index.encoder, pairs, strict, within=within)
        kept = 0 if close is None else len(close)
        assert rest is not None and kept + len(rest) == len(pairs)
        for row in range(kept):
            assert close is not None
            [anchor] = index.encoder.encode_queries([close.columns["anchor"][row]])
            source = next(pair.source for pair in pairs if pair.anchor == close.columns["anchor"][row])
            own = view.vectors([stored.id for stored in view.document_passages(source)]) @ anchor
            [negative] = index.encoder.encode_passages([close.columns["negative_1"][row]])
            assert negative @ anchor <= 0.95 * own.max() + 1e-5
        every, none = mine_index(view, index.encoder, pairs, loose, within=within)
        assert every is not None and len(every) == len(pairs) and none is None


def test_no_other_document(index: Index) -> None:
    with index.view() as view:
        documents = IndexDocuments(view)
        [pair, *_] = make_pairs(documents, kinds=["title"]).pairs
        found, rest = mine_index(view, index.encoder, [pair], MiningSettings(), within=frozenset())
        assert found is None and rest is not None and rest.columns["anchor"] == [pair.anchor]
