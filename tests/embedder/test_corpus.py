from __future__ import annotations

import copy
import itertools
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.embedder.corpus import TokenCorpus
from likewise.embedder.corpus_build import SourceText, build_corpus, open_or_build_corpus
from likewise.embedder.sentences import split_sentences
from likewise.embedder.vocabulary import VocabularySettings, train_vocabulary
from likewise.errors import DataError, TrainingError

DOCUMENTS = [
    f"Document {number} speaks of foxes. It has a second sentence! 第{number}篇文件說中文。它有兩句話。"
    for number in range(60)
]


@pytest.fixture(scope="module")
def tokenizer():
    return train_vocabulary(DOCUMENTS, VocabularySettings(size=90))


def sources(texts=DOCUMENTS):
    return [SourceText(text) for text in texts]


class TestContent:
    def test_every_token_of_every_document_is_there(self, tokenizer, tmp_path):
        corpus = build_corpus(sources(), tokenizer, tmp_path / "corpus")
        expected = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in DOCUMENTS]
        assert corpus.tokens.tolist() == list(itertools.chain(*expected))
        assert len(corpus) == corpus.counts.documents == 60
        assert corpus.counts.tokens == sum(map(len, expected))
        assert corpus.counts.characters == sum(map(len, DOCUMENTS))
        found = sorted((*corpus.bounds(held_out=False).tolist(), *corpus.bounds(held_out=True).tolist()))
        assert [corpus.tokens[a:b].tolist() for a, b in found] == expected

    def test_sentences_cut_documents_without_loss(self, tokenizer, tmp_path):
        corpus = build_corpus(sources(), tokenizer, tmp_path / "corpus")
        assert corpus.counts.sentences == 4 * 60
        assert tokenizer.decode(corpus.sentences_of(0)[1]) == "it has a second sentence!"
        for number in range(60):
            joined = np.concatenate(corpus.sentences_of(number)).tolist()
            assert joined == tokenizer(DOCUMENTS[number], add_special_tokens=False)["input_ids"]

    def test_sentences_given(self, tokenizer, tmp_path):
        documents = [SourceText("foxes speak foxes of sentence", (0, 5)), SourceText("has it", ())]
        corpus = build_corpus(documents, tokenizer, tmp_path / "corpus", held_out=0)
        assert [len(corpus.sentences_of(0)), len(corpus.sentences_of(1))] == [2, 1]
        assert tokenizer.decode(corpus.sentences_of(0)[0]) == "foxes"

    def test_special_tokens_in_the_text_are_text(self, tokenizer, tmp_path):
        corpus = build_corpus(sources(["foxes [MASK] [SEP] of it", "speak"]), tokenizer, tmp_path / "corpus")
        assert not {tokenizer.mask_token_id, tokenizer.sep_token_id} & set(corpus.tokens.tolist())
        assert tokenizer("[MASK]", add_special_tokens=False)["input_ids"] == [tokenizer.mask_token_id]

    def test_ids_take_two_bytes_or_four(self, tokenizer, tmp_path):
        assert build_corpus(sources(), tokenizer, tmp_path / "small").tokens.dtype == np.uint16
        tokenizer = copy.deepcopy(tokenizer)
        tokenizer.add_tokens([f"word{number}" for number in range(70_000)])
        large = build_corpus(
            sources(["word69999 foxes speak of it"]), tokenizer, tmp_path / "large", held_out=0
        )
        assert large.tokens.dtype == np.uint32
        assert large.tokens[0] == len(tokenizer) - 1

    def test_a_stream_of_many_groups(self, tokenizer, tmp_path, monkeypatch):
        whole = build_corpus(sources(), tokenizer, tmp_path / "whole")
        monkeypatch.setattr("likewise.embedder.corpus_build._GROUP", 100)
        stream = build_corpus(iter(sources()), tokenizer, tmp_path / "stream")
        assert stream.tokens.tolist() == whole.tokens.tolist()
        assert stream.sentences.tolist() == whole.sentences.tolist()
        assert stream.held_out.tolist() == whole.held_out.tolist()

    def test_duplicates_and_empty_documents_are_counted_and_left_out(self, tokenizer, tmp_path):
        texts = ["", DOCUMENTS[0], DOCUMENTS[1], DOCUMENTS[0], " \n", DOCUMENTS[2], DOCUMENTS[2]]
        corpus = build_corpus(sources(texts), tokenizer, tmp_path / "corpus")
        counts = corpus.counts
        assert (counts.documents, counts.duplicates, counts.empty) == (3, 2, 2)
        expected = build_corpus(sources(DOCUMENTS[:3]), tokenizer, tmp_path / "plain")
        assert corpus.tokens.tolist() == expected.tokens.tolist()
        assert corpus.held_out.tolist() == expected.held_out.tolist()


class TestHeldOut:
    def test_depends_on_the_document_alone(self, tokenizer, tmp_path):
        def held_out(texts, name):
            corpus = build_corpus(sources(texts), tokenizer, tmp_path / name, held_out=0.3)
            return {texts[number] for number in np.flatnonzero(corpus.held_out)}

        all_of_them = held_out(DOCUMENTS, "all")
        assert 6 <= len(all_of_them) <= 30
        assert held_out(DOCUMENTS[::-1], "reversed") == all_of_them
        half = DOCUMENTS[:40]
        assert held_out(half, "half") == all_of_them & set(half)

    @pytest.mark.parametrize(
        ("share", "documents", "expected"), [(0, 60, 0), (0.001, 2, 1), (0.999, 5, 4), (0.5, 1, None)]
    )
    def test_small_corpora(self, tokenizer, tmp_path, share, documents, expected):
        corpus = build_corpus(sources(DOCUMENTS[:documents]), tokenizer, tmp_path / "corpus", held_out=share)
        if expected is not None:
            assert corpus.counts.held_out == expected
        assert len(corpus.bounds(held_out=False)) + len(corpus.bounds(held_out=True)) == documents

    @pytest.mark.parametrize("share", [-0.1, 1.0])
    def test_share_out_of_range(self, tokenizer, tmp_path, share):
        with pytest.raises(DataError, match="share of documents"):
            build_corpus(sources(), tokenizer, tmp_path / "corpus", held_out=share)


class TestErrors:
    @pytest.mark.parametrize("texts", [[], [""], ["", " \n "]])
    def test_empty(self, tokenizer, tmp_path, texts):
        with pytest.raises(DataError, match="without a single token"):
            build_corpus(sources(texts), tokenizer, tmp_path / "corpus")
        assert list(tmp_path.iterdir()) == []

    def test_one_word(self, tokenizer, tmp_path):
        with pytest.raises(DataError, match="1 different tokens in 5"):
            build_corpus(sources(["the the", "the the the"]), tokenizer_of_the(), tmp_path / "corpus")

    def test_sentence_starts_out_of_order(self, tokenizer, tmp_path):
        with pytest.raises(DataError, match="rising sentence starts"):
            build_corpus([SourceText("foxes speak", (5, 0))], tokenizer, tmp_path / "corpus")

    def test_disk_full_keeps_what_was_there(self, tokenizer, tmp_path, monkeypatch):
        build_corpus(sources(), tokenizer, tmp_path / "corpus")

        def full(*args):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("likewise.embedder.corpus_build._append", full)
        with pytest.raises(TrainingError, match="No space left"):
            build_corpus(sources(DOCUMENTS[:5]), tokenizer, tmp_path / "corpus")
        assert len(TokenCorpus(tmp_path / "corpus")) == 60
        assert [path.name for path in tmp_path.iterdir()] == ["corpus"]

    def test_an_error_of_the_documents_leaves_nothing_behind(self, tokenizer, tmp_path):
        def documents():
            yield SourceText("foxes")
            raise RuntimeError("reader broke")

        with pytest.raises(RuntimeError, match="reader broke"):
            build_corpus(documents(), tokenizer, tmp_path / "corpus")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "name", ["tokens.bin", "sentences.bin", "documents.bin", "held-out.bin", "corpus.json"]
    )
    def test_a_cut_file_is_noticed(self, tokenizer, tmp_path, name):
        build_corpus(sources(), tokenizer, tmp_path)
        path = tmp_path / name
        os.truncate(path, path.stat().st_size - 1)
        with pytest.raises(DataError, match="no readable corpus"):
            TokenCorpus(tmp_path)


def tokenizer_of_the():
    return train_vocabulary(["the other the other"] * 5, VocabularySettings(size=18))


class TestReuse:
    def test_opened_when_fresh_and_rebuilt_when_stale(self, tokenizer, tmp_path):
        folder, calls = tmp_path / "corpus", []

        def documents():
            calls.append(1)
            return sources()

        first = open_or_build_corpus(documents, tokenizer, folder, source="files 1")
        again = open_or_build_corpus(documents, tokenizer, folder, source="files 1")
        assert len(calls) == 1 and again.fingerprint == first.fingerprint
        open_or_build_corpus(documents, tokenizer, folder, source="files 2")
        assert len(calls) == 2
        other = train_vocabulary(DOCUMENTS, VocabularySettings(size=80))
        open_or_build_corpus(documents, other, folder, source="files 2")
        assert len(calls) == 3
        open_or_build_corpus(documents, other, folder, source="files 2", held_out=0.5)
        assert len(calls) == 4

    def test_a_damaged_one_is_rebuilt(self, tokenizer, tmp_path):
        folder = tmp_path / "corpus"
        build_corpus(sources(), tokenizer, folder, source="files")
        (folder / "corpus.json").write_text("{")
        assert len(open_or_build_corpus(sources, tokenizer, folder, source="files")) == 60

    def test_view_of_a_part(self, tokenizer, tmp_path):
        corpus = build_corpus(sources(), tokenizer, tmp_path / "corpus", held_out=0.3)
        view = corpus.part(held_out=True)
        assert len(view) == corpus.counts.held_out
        assert [len(document) for document in view[1:3]] == [4, 4]
        assert view[0][0].tolist() == corpus.sentences_of(int(view.numbers[0]))[0].tolist()


@given(st.text(alphabet="ab.!? \n。！」”DrMs", max_size=80))
def test_sentence_starts_partition_any_text(text):
    starts = split_sentences(text)
    assert starts == sorted(set(starts))
    assert (starts[0] == 0 and starts[-1] < len(text)) if text else starts == []


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two? Three!", ["One.", " Two?", " Three!"]),
        ("J. S. Bach wrote it, e.g. this. Yes.", ["J. S. Bach wrote it, e.g. this.", " Yes."]),
        ("第一句。第二句！「第三句。」第四句", ["第一句。", "第二句！", "「第三句。」", "第四句"]),
        ('He said "no." Then left.', ['He said "no."', " Then left."]),
        ("version 3.11 is out", ["version 3.11 is out"]),
        ("a title\n\nits text", ["a title", "\n\nits text"]),
    ],
)
def test_sentences(text, sentences):
    starts = split_sentences(text)
    assert [text[a:b] for a, b in itertools.pairwise([*starts, len(text)])] == sentences
