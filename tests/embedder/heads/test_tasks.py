from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.embedder.heads.classification import Classification
from likewise.embedder.heads.conll import tagged
from likewise.embedder.heads.data import Answer, QuestionExample, TextExample
from likewise.embedder.heads.losses import AnswerObjective, ClassificationObjective, TaggingObjective
from likewise.embedder.heads.multilabel import MultiLabel
from likewise.embedder.heads.questions import Questions
from likewise.embedder.heads.regression import NumberPrediction, Regression
from likewise.embedder.heads.rows import HeadBatch, RowBatches, collate
from likewise.embedder.heads.tagging import Tagging, TagPrediction, split_words
from likewise.embedder.heads.task import IGNORED
from likewise.embedder.heads.tokens import WindowTokenizer
from likewise.errors import DataError, UsageError

WORDS = ["good", "bad", "film", "rotates", "金", "鑰", "\x00", "xyzzy", "Ann", "'s", "。"]


@pytest.fixture(scope="session")
def windows(tiny_bert):
    return WindowTokenizer.load(tiny_bert, pad_id=0, segments=True)


class TestWindows:
    @pytest.mark.parametrize("architecture", ["bert", "roberta", "modernbert"])
    def test_ids_and_segments_equal_transformers(self, architecture, plain_checkpoint, tiny_bert):
        from transformers import AutoTokenizer

        folder = tiny_bert if architecture == "bert" else plain_checkpoint(architecture)
        theirs = AutoTokenizer.from_pretrained(folder)
        segments = "token_type_ids" in theirs.model_input_names
        ours = WindowTokenizer.of(theirs, segments=segments)
        pairs = [("good film", "bad plot"), ("", "金鑰"), ("the key " * 40, "it rotates " * 40)]
        for length in (16, 64):
            found, cut = ours.first(*map(list, zip(*pairs, strict=True)), length=length)
            assert cut == 1
            for (first, second), window in zip(pairs, found, strict=True):
                wanted = theirs(first, second, truncation=True, max_length=length)
                assert window.ids.tolist() == wanted["input_ids"]
                if segments:
                    assert window.segments.tolist() == wanted["token_type_ids"]
                    assert set(window.segments.tolist()) == {0, 1}

    @given(words=st.lists(st.sampled_from(WORDS), max_size=60), overlap=st.integers(0, 5))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
    def test_windows_hold_every_token(self, windows, words, overlap):
        text = " ".join(words)
        [group] = windows.all([text], length=12, overlap=overlap)
        [[whole]] = windows.all([text], length=10_000, overlap=0)
        assert all(len(window) <= 12 for window in group)
        spans = {tuple(span) for window in group for span in window.spans[window.part == 0].tolist()}
        assert spans == {tuple(span) for span in whole.spans[whole.part == 0].tolist()}

    def test_cut_texts_are_counted_and_surrogates_are_no_error(self, windows):
        found, cut = windows.first(["good", "good " * 100, "", "half \ud83d"], length=16)
        assert cut == 1 and [len(window) for window in found][:3] == [3, 16, 2]

    @given(
        first=st.lists(st.sampled_from(WORDS), max_size=40),
        second=st.lists(st.sampled_from(WORDS), max_size=40),
        overlap=st.integers(0, 20),
    )
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
    def test_windows_of_pairs_hold_every_token_of_both(self, windows, first, second, overlap):
        texts = " ".join(first), " ".join(second)
        [group] = windows.pairs([texts[0]], [texts[1]], length=20, overlap=overlap)
        [[whole]] = windows.pairs([texts[0]], [texts[1]], length=10_000, overlap=0)
        [alone], _ = windows.first([texts[0]], [texts[1]], length=10_000)
        assert whole.ids.tolist() == alone.ids.tolist()
        assert all(len(window) <= 20 for window in group)
        if len(whole) <= 20:
            assert len(group) == 1
        for part in (0, 1):
            # A word that was cut in the middle has other tokens, but each character is in one.
            wanted = {at for a, b in whole.spans[whole.part == part].tolist() for at in range(a, b)}
            spans = [span for window in group for span in window.spans[window.part == part].tolist()]
            assert {at for a, b in spans for at in range(a, b)} == wanted

    def test_windows_of_a_short_and_a_long_text_repeat_the_short_one(self, windows):
        group = windows.pairs(["good film"], ["bad plot " * 20], length=16, overlap=2)[0]
        assert len(group) > 3
        assert all(window.ids[:4].tolist() == group[0].ids[:4].tolist() for window in group)
        assert [window.segments.tolist().count(0) for window in group] == [4] * len(group)

    def test_no_room(self, windows):
        with pytest.raises(UsageError, match="room for new tokens"):
            windows.all(["good"], length=6, overlap=4)


class TestBatches:
    def test_an_epoch_has_every_row_once_and_like_lengths_together(self, windows):
        task = Classification(["a", "b"])
        examples = [TextExample(("good " * (1 + number % 30),), "ab"[number % 2]) for number in range(300)]
        rows = task.rows(examples, task.encode(examples, windows))
        batches = RowBatches(rows, size=8, seed=0)
        seen = [row for index in range(batches.length(0)) for row in batches.batch(0, index)]
        assert {id(row) for row in seen} == {id(row) for row in rows} and len(seen) == 300
        padded = sum(
            collate(batches.batch(0, i), pad_id=0).input_ids.numel() for i in range(batches.length(0))
        )
        assert padded < 1.1 * sum(map(len, rows))
        orders = [[len(row) for i in range(5) for row in batches.batch(epoch, i)] for epoch in (0, 1, 0)]
        assert orders[0] == orders[2] != orders[1]
        assert RowBatches(rows, size=8, seed=1).fingerprint != batches.fingerprint
        with pytest.raises(DataError, match="at least one example"):
            RowBatches([], size=8, seed=0)

    def test_padding_only_where_lengths_differ(self, windows):
        task = Tagging(["O", "B-X"])
        examples = [tagged(["good"], ["B-X"]), tagged(["good", "film"], ["O", "B-X"])]
        batch = collate(task.rows(examples, task.encode(examples, windows)), pad_id=0, per_token=True)
        assert batch.attention_mask.tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
        assert batch.targets.tolist() == [[IGNORED, 1, IGNORED, IGNORED], [IGNORED, 0, 1, IGNORED]]
        assert batch.tokens == 7
        same = collate(task.rows(examples[1:], task.encode(examples[1:], windows)), pad_id=0, per_token=True)
        assert same.attention_mask is None


class TestSequences:
    def test_windows_of_a_text_weigh_as_one_and_their_logits_are_averaged(self, windows):
        task = Classification(["a", "b"], length=12, overlap=2, long_text="windows")
        examples = [TextExample(("good",), "a"), TextExample(("bad " * 30,), "b")]
        encoded = task.encode(examples, windows)
        rows = task.rows(examples, encoded)
        count = len(rows) - 1
        assert count > 2 and encoded.truncated == 0
        assert sum(row.weight for row in rows[1:]) == pytest.approx(rows[0].weight)
        assert sum(row.weight for row in rows) == pytest.approx(len(rows))
        logits = [np.array([1.0, 0.0]), *(np.array([0.0, float(number)]) for number in range(count))]
        assert task.pooled(encoded, logits).tolist() == [[1.0, 0.0], [0.0, pytest.approx((count - 1) / 2)]]

    def test_class_weights_reach_the_loss(self):
        examples = [TextExample(("x",), label) for label in "aaab"]
        task = Classification.learn(examples, balanced=True)
        assert [task.weight(task.target(example)) for example in examples] == pytest.approx([2 / 3] * 3 + [2])

    def test_pairs_need_two_texts(self, windows):
        with pytest.raises(UsageError, match="a pair of texts for this model, found 1"):
            Classification(["a", "b"], pair=True).encode([TextExample(("good",))], windows)

    def test_two_labels_have_the_f1_of_the_second(self):
        task = Classification(["0", "1"])
        examples = [TextExample(("x",), label) for label in "1110"]
        found = task.from_logits(np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]))
        # Of the label 1, two are right, one is missed and one is wrong: 2*2 / (3 + 3).
        assert task.score(examples, found)["f1"] == pytest.approx(2 / 3)
        none = task.from_logits(np.array([[1.0, 0.0]]))
        assert task.score([TextExample(("x",), "0")], none)["f1"] == 0.0
        assert "f1" not in Classification(["a", "b", "c"]).score([], [])

    def test_label_only_in_test_counts_as_wrong(self):
        task = Classification(["a", "b"])
        examples = [TextExample(("x",), "a"), TextExample(("y",), "new")]
        predictions = task.from_logits(np.array([[2.0, 0.0], [2.0, 0.0]]))
        assert task.score(examples, predictions)["accuracy"] == 0.5
        assert [(m.gold, m.predicted) for m in task.mistakes(examples, predictions)] == [("new", "a")]
        with pytest.raises(DataError, match="found 'new'"):
            task.target(examples[1])

    def test_multilabel(self):
        task = MultiLabel.learn([TextExample(("x",), ("a", "b")), TextExample(("y",), ())])
        predictions = task.from_logits(np.array([[3.0, 1.0], [-1.0, 2.0]]))
        assert [found.labels for found in predictions] == [("a", "b"), ("b",)]
        gold = [TextExample(("x",), ("a", "c")), TextExample(("y",), ())]
        # Right: a. Predicted: a, b, b. Gold: a, c.
        assert task.score(gold, predictions)["micro_f1"] == pytest.approx(2 / 5)
        assert task.score(gold, predictions)["subset_accuracy"] == 0.0
        with pytest.raises(DataError, match="at least one label"):
            MultiLabel.learn([TextExample(("y",), ())])

    def test_regression_scores(self):
        gold = [TextExample(("x",), value) for value in (1.0, 2.0, 4.0)]
        scores = Regression().score(gold, [NumberPrediction(value) for value in (2.0, 3.0, 3.5)])
        assert scores["spearman"] == pytest.approx(1.0)
        assert scores["mean_absolute_error"] == pytest.approx(2.5 / 3)

    def test_the_loss_is_that_of_hugging_face(self, windows):
        """Mean cross-entropy over the rows, whatever the micro-batches were."""
        task = Classification(["a", "b", "c"])
        examples = [TextExample(("good " * n,), "abc"[n % 3]) for n in range(1, 6)]
        rows = task.rows(examples, task.encode(examples, windows))
        batch = collate(rows, pad_id=0)
        logits = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
        loss = ClassificationObjective(pad_id=0).loss_of(logits, batch)
        assert loss.total().item() == pytest.approx(
            torch.nn.functional.cross_entropy(logits, batch.targets).item()
        )


class TestTagging:
    @given(words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=50))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
    def test_every_word_is_tagged_once_in_training_and_always_in_prediction(self, windows, words):
        tags = ["B-X" if number % 3 else "O" for number in range(len(words))]
        task = Tagging(["O", "B-X"], length=12, overlap=4)
        document = tagged(words, tags)
        encoded = task.encode([document], windows)
        visible = sum(word != "\x00" for word in words)  # a control character has no token
        if visible:
            rows = task.rows([document], encoded)
            assert sum(int((row.target != IGNORED).sum()) for row in rows) == visible
        logits = [np.eye(2)[(window.ids % 2).astype(int)] for window in encoded.windows]
        [found] = task.predict([document], encoded, logits)
        assert len(found.tags) == len(words)
        # The tag comes from the word's first token, in whichever window.
        for word, tag in zip(words, found.tags, strict=True):
            [[alone]] = windows.all([word], length=12, overlap=0)
            inside = alone.ids[alone.part == 0]
            assert tag == ("O" if not len(inside) or inside[0] % 2 == 0 else "B-X")

    def test_the_window_with_most_text_around_a_word_decides(self, windows):
        task = Tagging(["O", "B-X"], length=8, overlap=4)
        document = tagged(["good"] * 10, ["O"] * 10)
        encoded = task.encode([document], windows)
        # Every window says B-X at its edges only: no word takes its tag there but the first and the last.
        logits = []
        for window in encoded.windows:
            scores = np.zeros((len(window), 2))
            inside = np.flatnonzero(window.part == 0)
            scores[inside[[0, -1]], 1] = 5.0
            logits.append(scores)
        [found] = task.predict([document], encoded, logits)
        assert found.tags == ("B-X", *["O"] * 8, "B-X")

    def test_one_token_may_stand_for_several_words(self):
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=30, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False
        )
        tokenizer.train_from_iterator(["北京 北京 北京 金鑰 金鑰"] * 20, trainer)
        windows = WindowTokenizer(tokenizer, pad_id=0, segments=False)
        document = tagged(["北", "京"], ["B-LOC", "I-LOC"])
        task = Tagging(["O", "B-LOC", "I-LOC"], length=8, overlap=0)
        encoded = task.encode([document], windows)
        logits = [np.tile([0.0, 9.0, 0.0], (len(window), 1)) for window in encoded.windows]
        assert task.predict([document], encoded, logits)[0].tags == ("B-LOC", "B-LOC")

    def test_scores_count_all_gold_tags_and_unknown_types(self):
        task = Tagging(["O", "B-X"])
        gold = [tagged(["a", "b", "c"], ["B-X", "O", "B-NEW"])]
        predicted = [TagPrediction(gold[0].text, gold[0].words, ("B-X", "B-X", "O"), (0.9, 0.8, 0.7))]
        scores = task.score(gold, predicted)
        assert (scores["precision"], scores["recall"], scores["f1"]) == (0.5, 0.5, 0.5)
        assert scores["tag_accuracy"] == pytest.approx(1 / 3)
        assert task.mistakes(gold, predicted)[0].predicted == "[a](X) [b](X) c"

    def test_raw_text_keeps_its_places(self):
        document = split_words("U.S. 的 @ann's foo-bar!")
        words = [document.text[start:end] for start, end in document.words]
        assert words == ["U.S", ".", "的", "@ann's", "foo-bar", "!"]
        assert split_words("").words == ()

    def test_the_mean_is_over_tags_not_over_rows(self):
        targets = torch.tensor([[IGNORED, 1, 0, 1], [IGNORED, 1, IGNORED, IGNORED]])
        logits = torch.randn(2, 4, 2, generator=torch.Generator().manual_seed(0))
        whole = HeadBatch(torch.zeros(2, 4, dtype=torch.long), None, None, targets, torch.ones(2), 6)
        objective = TaggingObjective(pad_id=0)
        loss = objective.loss_of(logits, whole)
        assert objective.counts(whole) == {"tagging": 4}
        expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        assert loss.total().item() == pytest.approx(expected.item())


CONTEXT = "Ann lives in London. 金鑰每年輪替一次，在北京。 " + "it was a film. " * 12 + "Bob works in Paris."


class TestQuestions:
    def spike(self, encoded, start, end, height=10.0):
        """Logits that point at one place of the context, in every window that holds it."""
        found = []
        for window in encoded.windows:
            logits = np.zeros((len(window), 2), dtype=np.float32)
            inside = window.part == 1
            logits[inside & (window.spans[:, 0] == start), 0] = height
            logits[inside & (window.spans[:, 1] == end), 1] = height
            found.append(logits)
        return found

    @pytest.mark.parametrize("answer", ["London", "輪替一次", "北京", "Paris", "works in Paris"])
    def test_answers_keep_their_place_in_the_original_text(self, windows, answer):
        start = CONTEXT.index(answer)
        example = QuestionExample("where ?", CONTEXT, (Answer(answer, start),))
        task = Questions(length=32, overlap=12)
        encoded = task.encode([example], windows)
        assert len(encoded.windows) > 3 and all(len(window) <= 32 for window in encoded.windows)
        [found] = task.predict([example], encoded, self.spike(encoded, start, start + len(answer)))
        assert (found.answer.text, found.answer.start) == (answer, start)
        assert task.score([example], [found]) == {"f1": 1.0, "exact_match": 1.0}
        assert 0.5 < found.answer.probability <= 1
        rows = task.rows([example], encoded)
        held = [row for row in rows if row.target.any()]
        assert held and len(held) < len(rows), "windows without the answer have none"
        for row in held:
            first, last = row.target.tolist()
            assert CONTEXT[row.window.spans[first, 0] : row.window.spans[last, 1]] == answer

    def test_spans_are_ordered_short_enough_and_not_of_the_question(self, windows):
        example = QuestionExample("Ann in London ?", "Ann lives in London .")
        task = Questions(answer_tokens=2, n_best=20)
        encoded = task.encode([example], windows)
        rng = np.random.default_rng(0)
        [found] = task.predict([example], encoded, [rng.normal(size=(len(encoded.windows[0]), 2))])
        scores = [span.score for span in found.spans]
        assert scores == sorted(scores, reverse=True)
        assert len(found.spans) == 9, "five of one token and four of two"
        assert sum(span.probability for span in found.spans) < 1.0
        assert all(span.text == example.context[span.start : span.end] != "" for span in found.spans)

    def test_no_answer_has_a_margin_that_dev_data_choose(self, windows):
        task = Questions.learn(
            [QuestionExample("q", "c", ()), QuestionExample("q", "Ann", (Answer("Ann", 0),))]
        )
        assert task.no_answer == 0.0
        assert Questions.learn([QuestionExample("q", "Ann", (Answer("Ann", 0),))]).no_answer is None
        examples, logits = [], []
        for number in range(10):
            answers = (Answer("Ann", 0),) if number >= 4 else ()
            example = QuestionExample("who ?", "Ann lives .", answers)
            encoded = task.encode([example], windows)
            examples.append(example)
            logits += self.spike(encoded, 0, 3, height=1.0 + number)
        encoded = task.encode(examples, windows)
        before = task.predict(examples, encoded, logits)
        assert task.score(examples, before)["f1"] == pytest.approx(0.6)
        tuned = task.tuned(examples, before)
        after = tuned.predict(examples, encoded, logits)
        assert tuned.score(examples, after)["f1"] == 1.0
        assert [found.answer.text for found in after] == [""] * 4 + ["Ann"] * 6

    @pytest.mark.parametrize(
        ("question", "context"), [("who " * 300, "Ann lives"), ("", ""), ("who", ""), ("", "Ann")]
    )
    def test_long_and_empty_questions(self, windows, question, context):
        task = Questions(length=32, overlap=30)
        example = QuestionExample(question, context)
        encoded = task.encode([example], windows)
        logits = [np.zeros((len(window), 2), dtype=np.float32) for window in encoded.windows]
        [found] = task.predict([example], encoded, logits)
        assert found.answer.text in context

    def test_padding_is_no_place_for_an_answer(self, windows):
        examples = [QuestionExample("who ?", text) for text in ("Ann", "Ann lives in London")]
        task = Questions()
        rows = task.rows(examples, task.encode(examples, windows))
        batch = collate(rows, pad_id=0)
        logits = torch.zeros(*batch.input_ids.shape, 2)
        loss = AnswerObjective(pad_id=0).loss_of(logits, batch)
        expected = np.mean([np.log(len(row)) for row in rows])
        assert loss.total().item() == pytest.approx(expected, rel=1e-5)
