from __future__ import annotations

import json
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.embedder.heads import conll, squad
from likewise.embedder.heads.data import (
    Answer,
    QuestionExample,
    TaggedExample,
    TextExample,
    class_weights,
    duplicates,
    grouped_split,
    stratified_split,
)
from likewise.embedder.heads.dataset import load_data
from likewise.embedder.heads.readers import Reading, read_examples
from likewise.embedder.heads.tasks import learn_task
from likewise.embedder.tables import read_table
from likewise.errors import DataError, UsageError

CLASSIFY = Reading(kind="classification")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return str(path)


def rows(*pairs):
    return "text,label\n" + "".join(f"{text},{label}\n" for text, label in pairs)


class TestColumns:
    def test_named_columns_win_over_recognised_ones_and_order_does_not_matter(self, tmp_path):
        source = write(tmp_path / "a.csv", "label,text,summary,score\nx,long,short,1\n")
        loaded = read_examples(source, CLASSIFY)
        assert (
            loaded.examples == [TextExample(("long",), "x")] and loaded.columns == "text: text; label: label"
        )
        chosen = Reading(kind="classification", text_columns=("summary",), label_columns=("score",))
        assert read_examples(source, chosen).examples == [TextExample(("short",), "1")]

    def test_pairs(self, tmp_path):
        source = write(tmp_path / "a.csv", "hypothesis,premise,label\nh,p,yes\n")
        pair = Reading(kind="classification", pair=True)
        assert read_examples(source, pair).examples == [TextExample(("p", "h"), "yes")]

    @pytest.mark.parametrize(
        ("header", "reading", "message"),
        [
            ("words,label", CLASSIFY, "a known name for the text .* found words, label"),
            ("text,note", CLASSIFY, "a known name for the label .* found text, note"),
            ("text,label", Reading(kind="classification", text_columns=("txt",)), "no column 'txt'"),
            ("text,label", Reading(kind="classification", pair=True), "columns with a known name"),
            ("a,b", Reading(kind="classification", pair=True, text_columns=("a",)), "2 text columns"),
        ],
    )
    def test_mismatched_columns_are_named(self, tmp_path, header, reading, message):
        source = write(tmp_path / "a.csv", f"{header}\nx,y\n")
        with pytest.raises(DataError, match=message) as caught:
            read_examples(source, reading)
        assert caught.value.remedy or "2 text columns" in str(caught.value)


class TestLabels:
    @pytest.mark.parametrize("cell", ["", " ", "NaN", "nan"])
    def test_a_missing_label_is_refused_or_left_out_and_counted(self, tmp_path, cell):
        source = write(tmp_path / "a.csv", rows(("one", "x"), ("two", cell), ("three", "y")))
        with pytest.raises(DataError, match="none in row 2") as caught:
            read_examples(source, CLASSIFY)
        assert "--skip-unlabelled" in str(caught.value.remedy)
        loaded = read_examples(source, Reading(kind="classification", skip_unlabelled=True))
        assert [example.label for example in loaded.examples] == ["x", "y"]
        assert loaded.notes == ["1 rows without a label are left out"]

    def test_nan_and_floats_of_json(self, tmp_path):
        lines = [{"text": "a", "label": 1.0}, {"text": "b", "label": math.nan}, {"text": "c", "label": 0}]
        source = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, lines)))
        loaded = read_examples(source, Reading(kind="classification", skip_unlabelled=True))
        assert [example.label for example in loaded.examples] == ["1", "0"]

    def test_empty_texts_are_kept_and_counted(self, tmp_path):
        source = write(tmp_path / "a.csv", rows(("", "x"), ("two", "y")))
        loaded = read_examples(source, CLASSIFY)
        assert loaded.examples[0] == TextExample(("",), "x")
        assert loaded.notes == ["1 rows have an empty text; they are kept"]

    def test_a_label_to_skip(self, tmp_path):
        source = write(tmp_path / "a.csv", rows(("one", "x"), ("two", "-"), ("three", "y")))
        loaded = read_examples(source, Reading(kind="classification", skip_labels=("-",)))
        assert len(loaded.examples) == 2 and "1 rows with the label -" in loaded.notes[0]

    def test_numbers(self, tmp_path):
        source = write(tmp_path / "a.csv", "text,score\na,2.5\nb,x\n")
        with pytest.raises(DataError, match=r"a number in row 2 .* found 'x'"):
            read_examples(source, Reading(kind="regression"))

    @pytest.mark.parametrize(
        ("text", "labels"),
        [
            ('{"text": "a", "labels": ["x", "y"]}\n{"text": "b", "labels": []}', (("x", "y"), ())),
            ('{"text": "a", "labels": "x|y"}\n{"text": "b", "labels": ""}', (("x", "y"), ())),
            ('{"text": "a", "labels": "x, y,x"}\n{"text": "b", "labels": null}', (("x", "y"), ())),
        ],
    )
    def test_several_labels(self, tmp_path, text, labels):
        loaded = read_examples(write(tmp_path / "a.jsonl", text), Reading(kind="multilabel"))
        assert tuple(example.label for example in loaded.examples) == labels

    def test_several_label_columns_of_yes_and_no(self, tmp_path):
        source = write(tmp_path / "a.csv", "text,toxic,spam\na,1,0\nb,0,0\nc,True,yes\n")
        loaded = read_examples(source, Reading(kind="multilabel", label_columns=("toxic", "spam")))
        assert [example.label for example in loaded.examples] == [("toxic",), (), ("toxic", "spam")]

    def test_one_class_is_refused(self):
        examples = [TextExample(("a",), "x"), TextExample(("b",), "x")]
        with pytest.raises(DataError, match=r"at least two different labels .* found only 'x'"):
            learn_task("classification", examples)

    def test_nothing_to_tag_is_refused(self):
        with pytest.raises(DataError, match="nothing but the tag O"):
            learn_task("tagging", [TaggedExample("a", ((0, 1),), ("O",))])


class TestData:
    def test_splits_of_a_folder_duplicates_and_labels_only_in_test(self, tmp_path):
        train = [(f"film {number}", "Positive" if number % 4 else "Negative") for number in range(40)]
        write(tmp_path / "train.csv", rows(*train))
        write(tmp_path / "test.csv", rows(("film 1", "Positive"), ("FILM  2", "Negative"), ("new", "Mixed")))
        data = load_data(str(tmp_path), CLASSIFY, dev_share=0.25)
        assert (len(data.train), len(data.dev), len(data.test)) == (30, 10, 3)
        # Stratified: a fourth is negative on both sides, give or take the rounding.
        assert Counter(example.label for example in data.dev)["Negative"] in (2, 3)
        assert any("labels that the training data lack" in note and "Mixed" in note for note in data.notes)
        known = {example.texts[0] for example in data.train}
        same = sum(text in known for text in ("film 1", "film 2"))
        assert any(f"{same} of 3 test examples are in the training data" in note for note in data.notes)
        assert data.facts["labels"].startswith("Positive 2")
        again = load_data(str(tmp_path), CLASSIFY, dev_share=0.25)
        assert again.dev == data.dev
        assert load_data(str(tmp_path), CLASSIFY, dev_share=0.25, seed=1).dev != data.dev

    def test_a_limit_draws_from_a_sorted_file(self, tmp_path):
        source = write(tmp_path / "a.csv", rows(*[(f"film {n}", "xy"[n >= 50]) for n in range(100)]))
        data = load_data(source, CLASSIFY, dev_share=0, limit=20)
        labels = Counter(example.label for example in data.train)
        assert len(data.train) == 20 and min(labels["x"], labels["y"]) >= 4
        assert data.facts["train"] == "20 examples, drawn with seed 0"
        assert load_data(source, CLASSIFY, dev_share=0, limit=20).train == data.train
        assert load_data(source, CLASSIFY, dev_share=0, limit=20, seed=1).train != data.train
        assert len(load_data(source, CLASSIFY, dev_share=0, limit=500).train) == 100

    def test_nothing_held_out(self, tmp_path):
        source = write(tmp_path / "a.csv", rows(("a", "x"), ("b", "y")))
        data = load_data(source, CLASSIFY, dev_share=0)
        assert data.dev == [] and "nothing is held out: no score will be known" in data.notes
        with pytest.raises(DataError, match="enough examples to hold out"):
            load_data(source, CLASSIFY)
        with pytest.raises(UsageError, match=r"in \[0, 1\)"):
            load_data(source, CLASSIFY, dev_share=1)

    def test_a_folder_without_a_training_file(self, tmp_path):
        write(tmp_path / "data.csv", rows(("a", "x")))
        with pytest.raises(DataError, match=r"a file named train in .* found data\.csv"):
            load_data(str(tmp_path), CLASSIFY)

    def test_duplicates_ignore_case_and_spaces(self):
        train = [TextExample(("A  b", "c"))]
        assert duplicates(train, [TextExample(("a b", "C")), TextExample(("a", "b c"))]) == 1

    @given(
        sizes=st.lists(st.integers(1, 30), min_size=1, max_size=6),
        share=st.floats(0.05, 0.5),
        seed=st.integers(0, 9),
    )
    def test_stratified_split(self, sizes, share, seed):
        strata = [name for name, size in enumerate(sizes) for _ in range(size)]
        try:
            kept, held_out = stratified_split(strata, share, seed=seed)
        except DataError:
            assert sum(sizes) * share < 0.5 or max(sizes) == 1 or share * sum(sizes) < len(sizes)
            return
        assert sorted([*kept, *held_out]) == list(range(len(strata)))
        assert set(strata) == {strata[position] for position in kept}, (
            "every label stays in the training data"
        )
        assert abs(len(held_out) - share * len(strata)) <= 1 + sizes.count(1)

    def test_grouped_split_keeps_articles_together(self):
        titles = [f"article {number // 5}" for number in range(50)]
        kept, held_out = grouped_split(titles, 0.2, seed=0)
        assert not {titles[at] for at in kept} & {titles[at] for at in held_out}
        assert len(held_out) == 10
        with pytest.raises(DataError, match="at least two articles"):
            grouped_split(["one"] * 3, 0.2, seed=0)

    def test_class_weights_have_the_mean_1_over_the_examples(self):
        counts = [1, 9, 90]
        weights = class_weights(counts)
        assert sum(w * c for w, c in zip(weights, counts, strict=True)) / 100 == pytest.approx(1)
        assert weights[0] == pytest.approx(90 * weights[2])


class TestConll:
    def test_tabs_spaces_comments_and_document_marks(self, tmp_path):
        path = tmp_path / "a.conll"
        path.write_text(
            "-DOCSTART- X O\n\n# id = 1\n#\tO\nAnn\tNNP\tB-PER\r\n\nin IN O\nParis NNP S-LOC", "utf-8"
        )
        first, second = conll.read_conll(path)
        assert (first.text, first.tags) == ("# Ann", ("O", "B-PER"))
        assert (second.text, second.tags) == ("in Paris", ("O", "S-LOC"))

    def test_chinese_has_no_spaces(self, tmp_path):
        path = tmp_path / "a.bio"
        path.write_text("北 B-LOC\n京 I-LOC\n的 O\nApple B-ORG\n店 O\n", "utf-8")
        [document] = conll.read_conll(path)
        assert document.text == "北京的 Apple 店"
        assert [document.text[a:b] for a, b in document.words] == ["北", "京", "的", "Apple", "店"]

    @pytest.mark.parametrize("text", ["Ann\n", "Ann B_PER\n", "Ann X-PER\n", "\n\n"])
    def test_broken_lines(self, tmp_path, text):
        path = tmp_path / "a.conll"
        path.write_text(text, "utf-8")
        with pytest.raises(DataError, match=r"line 1|at least one document"):
            conll.read_conll(path)

    def test_lists_in_json_lines(self, tmp_path):
        source = write(tmp_path / "a.jsonl", '{"tokens": ["in", "Paris"], "ner_tags": ["O", "B-LOC"]}\n')
        assert read_examples(source, Reading(kind="tagging")).examples[0].tags == ("O", "B-LOC")
        bad = write(tmp_path / "b.jsonl", '{"tokens": ["in", "Paris"], "ner_tags": ["O"]}\n')
        with pytest.raises(DataError, match=r"row 1 .* a tag for each of 2 words, found 1"):
            read_examples(bad, Reading(kind="tagging"))

    @pytest.mark.data
    def test_wnut17(self, data_dir):
        documents = conll.read_conll(data_dir / "wnut17" / "wnut17-train.conll")
        assert len(documents) == 3394
        assert sum(len(document.words) for document in documents) == 62730
        assert sum(tag.startswith("B-") for document in documents for tag in document.tags) == 1975


class TestSquad:
    def test_versions_duplicates_and_wrong_places(self, tmp_path):
        context = "金鑰每年輪替一次。The key rotates. 金鑰。"
        answers = [
            {"text": "金鑰", "answer_start": 0},
            {"text": "金鑰", "answer_start": 0},
            {"text": "金鑰", "answer_start": 24},
            {"text": "nowhere", "answer_start": 3},
        ]
        entries = [
            {"id": 1, "question": "誰？", "answers": answers},
            {"id": 2, "question": "誰？", "answers": [], "is_impossible": True},
            {"id": 3, "question": "誰？"},
        ]
        content = {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": entries}]}]}
        path = tmp_path / "a.json"
        path.write_text(json.dumps(content), "utf-8")
        (known, impossible, unknown), notes = squad.read_squad(path)
        last = context.rindex("金鑰")
        assert known.answers == (Answer("金鑰", 0), Answer("金鑰", last), Answer("nowhere", -1))
        assert impossible.answers == () and unknown.answers is None
        assert "1 answers do not begin" in notes[0] and "1 answers are not in their context" in notes[1]
        with pytest.raises(DataError, match="found 1 without"):
            read_examples(str(path), Reading(kind="questions"))

    def test_tables(self, tmp_path):
        row = {
            "question": "q",
            "context": "a fox",
            "answers": {"text": ["fox"], "answer_start": [2]},
            "id": "7",
        }
        source = write(tmp_path / "a.jsonl", json.dumps(row))
        loaded = read_examples(source, Reading(kind="questions"))
        assert loaded.examples == [QuestionExample("q", "a fox", (Answer("fox", 2),), "7")]
        with pytest.raises(DataError, match="columns question and context"):
            squad.questions_of(read_table(write(tmp_path / "b.csv", "a,b\n1,2\n")))

    @pytest.mark.data
    @pytest.mark.parametrize(
        ("name", "count", "moved"),
        [
            ("xquad/xquad.zh.json.gz", 1190, 0),
            ("drcd-dev/qa.squad.json.gz", 3524, 0),
            ("cmrc2018-dev/qa.squad.json.gz", 3219, 1),
        ],
    )
    def test_published_files(self, data_dir, name, count, moved):
        questions, notes = squad.read_squad(data_dir / name)
        assert len(questions) == count and len(notes) >= moved
        for question in questions:
            for answer in question.answers:
                end = answer.start + len(answer.text)
                assert answer.start < 0 or question.context[answer.start : end] == answer.text


class TestTextFolders:
    """Sets that ship as `train/pos/1.txt`: the folder is the label."""

    @staticmethod
    def reviews(folder, **labels):
        for label, texts in labels.items():
            (folder / label).mkdir(parents=True)
            for number, text in enumerate(texts):
                (folder / label / f"{number}_7.txt").write_text(text, "utf-8")

    def test_the_layout_of_the_published_reviews(self, tmp_path):
        self.reviews(tmp_path / "train", pos=["A joy.", "好片\n第二行"], neg=["Dull."], unsup=["Whatever."])
        self.reviews(tmp_path / "test", pos=["Fine."], neg=["Bad.", "Awful."])
        (tmp_path / "train" / "urls_pos.txt").write_text("http://...", "utf-8")
        (tmp_path / "README").write_text("About the data.", "utf-8")
        data = load_data(str(tmp_path), CLASSIFY, dev_share=0)
        assert data.train == [
            TextExample(("Dull.",), "neg"),
            TextExample(("A joy.",), "pos"),
            TextExample(("好片\n第二行",), "pos"),
        ]
        assert [example.label for example in data.test] == ["neg", "neg", "pos"]
        assert "train: the texts in unsup have no label and are left out" in data.notes
        assert data.facts["labels"] == "pos 2, neg 1"

    def test_one_folder_for_each_part(self, tmp_path):
        self.reviews(tmp_path / "a", yes=["x", "y"], no=["z"])
        self.reviews(tmp_path / "b", yes=["v"])
        data = load_data(str(tmp_path / "a"), CLASSIFY, test=str(tmp_path / "b"), dev_share=0)
        assert (len(data.train), len(data.test)) == (3, 1)

    def test_tables_win_and_other_tasks_have_no_such_folders(self, tmp_path):
        self.reviews(tmp_path / "train", pos=["x"], neg=["y"])
        write(tmp_path / "train.csv", rows(("a", "x"), ("b", "y")))
        with pytest.raises(DataError, match="expected columns"):
            load_data(str(tmp_path), Reading(kind="classification", pair=True), dev_share=0)
        with pytest.raises(DataError, match="expected a file named train"):
            load_data(str(tmp_path / "train"), Reading(kind="tagging"), dev_share=0)
        assert len(load_data(str(tmp_path), CLASSIFY, dev_share=0).train) == 2

    def test_bytes_that_are_no_text_and_empty_folders(self, tmp_path):
        self.reviews(tmp_path / "train", pos=["x"])
        (tmp_path / "train" / "pos" / "1.txt").write_bytes(b"\xff\xfe\xfa")
        with pytest.raises(DataError, match=r"expected UTF-8 in .*1\.txt"):
            load_data(str(tmp_path), CLASSIFY, dev_share=0)
        (tmp_path / "empty").mkdir()
        with pytest.raises(DataError, match="expected a file named train") as caught:
            load_data(str(tmp_path / "empty"), CLASSIFY)
        assert "give a folder of .txt files for each label" in str(caught.value.remedy)
