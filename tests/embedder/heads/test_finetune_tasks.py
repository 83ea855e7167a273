"""Tagging, extractive answers, and models of other architectures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.embedder.heads.conll import tagged
from likewise.embedder.heads.data import Answer, QuestionExample, TextExample
from likewise.embedder.heads.finetune import finetune
from likewise.embedder.heads.modeling import position_limit
from likewise.embedder.heads.predictor import Predictor
from likewise.errors import EncoderError

from .finetuning import data, reloaded, settings


def people(count: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        words, tags = [], []
        for _ in range(int(rng.integers(1, 40))):
            word = str(rng.choice(["ann", "bob", "london", "paris", "lives", "works", "in", "北", "film"]))
            words.append(word)
            kind = "PER" if word in ("ann", "bob") else "LOC" if word in ("london", "paris", "北") else None
            tags.append(f"B-{kind}" if kind else "O")
        found.append(tagged(words, tags))
    return found


class TestTagging:
    def test_documents_longer_than_a_window_are_tagged_whole(self, tiny_bert, tmp_path):
        parts = data(people(80), people(20, seed=1), people(20, seed=2))
        chosen = settings(tiny_bert, "tagging", length=24, overlap=8, epochs=6.0)
        result = finetune(parts, tmp_path / "m", chosen)
        assert result.reports[1].metrics["f1"] > 0.9
        assert set(result.reports[1].by_label) == {"f1 LOC", "f1 PER"}
        predictor = Predictor.load(tmp_path / "m")
        assert predictor.runtime.startswith("openvino")
        found = predictor.predict(parts.test)
        assert [len(p.tags) for p in found] == [len(document.words) for document in parts.test]
        assert predictor.task.score(parts.test, found) == pytest.approx(result.reports[1].metrics, abs=0.02)
        [raw] = predictor.predict_texts(["ann lives in london, bob in 北。"])
        assert raw.marked() == "[ann](PER) lives in [london](LOC), [bob](PER) in [北](LOC)。"
        _, theirs = reloaded(tmp_path / "m", "AutoModelForTokenClassification")
        assert theirs.config.id2label == {0: "O", 1: "B-LOC", 2: "B-PER"}


class TestQuestions:
    def test_answers_in_long_contexts(self, tiny_bert, tmp_path):
        rng = np.random.default_rng(0)
        examples = []
        for number in range(120):
            fillers = [
                str(rng.choice(["film", "plot", "it", "was", "金"])) for _ in range(int(rng.integers(2, 60)))
            ]
            at = int(rng.integers(len(fillers)))
            name = str(rng.choice(["london", "paris", "北"]))
            context = " ".join([*fillers[:at], "lives", name, *fillers[at:]])
            asked = QuestionExample("where ?", context, (Answer(name, context.index(name)),), str(number))
            examples.append(asked)
        chosen = settings(tiny_bert, "questions", length=32, overlap=12, epochs=8.0)
        result = finetune(data(examples[:90], examples[90:]), tmp_path / "m", chosen)
        assert result.reports[0].metrics["exact_match"] > 0.8
        predictor = Predictor.load(tmp_path / "m")
        assert predictor.runtime.startswith("openvino")
        context = "it was a film , ann lives london it was"
        assert predictor.answer("where ?", context).answer.text == "london"
        tokenizer, theirs = reloaded(tmp_path / "m", "AutoModelForQuestionAnswering")
        with torch.no_grad():
            output = theirs(**tokenizer("where ?", context, return_tensors="pt"))
        ours = Predictor.load(tmp_path / "m", runtime="torch").answer("where ?", context)
        scores = output.start_logits[0][:, None] + output.end_logits[0][None, :]
        tokens = tokenizer("where ?", context, return_offsets_mapping=True)
        for span in ours.spans:
            first, last = (
                next(
                    at
                    for at, offsets in enumerate(tokens["offset_mapping"])
                    if tokens.sequence_ids()[at] == 1 and offsets[side] == place
                )
                for side, place in enumerate((span.start, span.end))
            )
            assert span.score == pytest.approx(float(scores[first, last]), abs=1e-4)


class TestModels:
    @pytest.mark.parametrize("architecture", ["roberta", "distilbert", "albert", "modernbert", "mpnet"])
    def test_other_architectures(self, architecture, plain_checkpoint, tmp_path):
        folder = plain_checkpoint(architecture)
        parts = data([TextExample((f"fox {n}", "dog"), "ab"[n % 2]) for n in range(8)])
        made = settings(folder, pair=True, epochs=1.0, rate=1e-4)
        finetune(parts, tmp_path / "m", made)
        tokenizer, theirs = reloaded(tmp_path / "m", "AutoModelForSequenceClassification")
        [found] = Predictor.load(tmp_path / "m", runtime="torch").predict([TextExample(("fox", "dog"))])
        with torch.no_grad():
            wanted = theirs(**tokenizer("fox", "dog", return_tensors="pt")).logits.softmax(-1)[0]
        assert found.probabilities.tolist() == pytest.approx(wanted.tolist(), abs=1e-5)
        assert position_limit(theirs, tokenizer) == 64

    def test_a_model_that_transformers_saved(self, tiny_bert, tmp_path):
        from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

        config = BertConfig.from_pretrained(tiny_bert)
        config.id2label, config.label2id = {0: "no", 1: "yes", 2: "maybe"}, {"no": 0, "yes": 1, "maybe": 2}
        BertForSequenceClassification(config).save_pretrained(tmp_path)
        AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path)
        predictor = Predictor.load(tmp_path, runtime="torch")
        assert predictor.task.labels == ("no", "yes", "maybe")
        assert predictor.predict_texts(["good"])[0].label in ("no", "yes", "maybe")

    def test_no_model_with_a_head(self, tiny_bert, tmp_path):
        with pytest.raises(EncoderError, match="found BertModel") as caught:
            Predictor.load(tiny_bert)
        assert "likewise finetune" in str(caught.value.remedy)
        with pytest.raises(EncoderError, match=r"no config\.json with an architecture"):
            Predictor.load(tmp_path)
