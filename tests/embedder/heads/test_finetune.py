"""Fine-tuning the whole model on labels, and the ways to do it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
import torch

from likewise.embedder.events import Evaluated, Progress
from likewise.embedder.heads.data import TextExample
from likewise.embedder.heads.finetune import finetune
from likewise.embedder.heads.modeling import freeze, load_for, save
from likewise.embedder.heads.predictor import Predictor
from likewise.embedder.heads.rows import RowBatches
from likewise.embedder.heads.tasks import learn_task
from likewise.embedder.training import train
from likewise.embedder.training_settings import TrainingSettings
from likewise.errors import EncoderError, UsageError

from .finetuning import data, reloaded, reviews, settings


@pytest.fixture(scope="module")
def sentiment(tiny_bert, tmp_path_factory):
    """A classifier, its result, and what it was trained on."""
    folder = tmp_path_factory.mktemp("sentiment") / "model"
    parts = data(reviews(160), reviews(40, seed=1), reviews(40, seed=2))
    return folder, finetune(parts, folder, settings(tiny_bert)), parts


class TestClassification:
    def test_it_learns_and_reports(self, sentiment):
        folder, result, _ = sentiment
        assert result.status == "finished" and [report.split for report in result.reports] == ["dev", "test"]
        report = result.reports[1]
        assert report.metrics["accuracy"] >= 0.9
        low, high = report.intervals["accuracy"]
        assert 0.7 < low <= report.metrics["accuracy"] <= high <= 1.0
        assert set(report.by_label) == {"f1 Negative", "f1 Positive"}
        assert report.wrong == round((1 - report.metrics["accuracy"]) * 40)
        names = {path.name for path in folder.iterdir()}
        assert {"README.md", "metrics.json", "errors-test.jsonl", "confusion.png", "calibration.png"} <= names
        metrics = json.loads((folder / "metrics.json").read_text("utf-8"))
        assert metrics["scores"][1]["metrics"]["accuracy"] == pytest.approx(report.metrics["accuracy"])
        card = (folder / "README.md").read_text("utf-8")
        assert "40 test examples" in card and "95% interval of accuracy" in card
        assert not list((folder / "training").rglob("step-*")), "checkpoints of a finished run are removed"

    def test_transformers_loads_it_with_equal_logits_and_label_names(self, sentiment):
        folder, _, parts = sentiment
        tokenizer, theirs = reloaded(folder, "AutoModelForSequenceClassification")
        assert theirs.config.id2label == {0: "Negative", 1: "Positive"}
        assert theirs.config.attention_probs_dropout_prob == 0.1, "as it was in the encoder"
        ours = Predictor.load(folder, runtime="torch")
        for example, found in zip(parts.test, ours.predict(parts.test), strict=True):
            with torch.no_grad():
                wanted = theirs(**tokenizer(example.texts[0], return_tensors="pt")).logits.softmax(-1)[0]
            assert found.probabilities.tolist() == pytest.approx(wanted.tolist(), abs=1e-5)

    def test_a_new_process_predicts_the_same_through_openvino_without_torch(self, sentiment):
        folder, _, _ = sentiment
        texts = ["it was a joy", "dull film", "", "好", "good " * 300]
        here = Predictor.load(folder)
        assert here.runtime.startswith("openvino")
        code = (
            "import json, sys; from likewise.embedder.heads.predictor import Predictor;"
            f"found = Predictor.load({str(folder)!r}).predict_texts({texts!r});"
            "assert not {'torch', 'transformers'} & set(sys.modules);"
            "print(json.dumps([p.probabilities.tolist() for p in found]))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [p.probabilities.tolist() for p in here.predict_texts(texts)]
        reference = Predictor.load(folder, runtime="torch").predict_texts(texts)
        for one, other in zip(here.predict_texts(texts), reference, strict=True):
            assert one.label == other.label
            assert one.probabilities.tolist() == pytest.approx(other.probabilities.tolist(), abs=0.02)

    def test_order_and_company_do_not_change_a_prediction(self, sentiment):
        folder, _, parts = sentiment
        predictor = Predictor.load(folder, runtime="torch")
        together = predictor.predict(parts.test)
        for example, found in list(zip(parts.test, together, strict=True))[:5]:
            [alone] = predictor.predict([example])
            assert alone.probabilities.tolist() == pytest.approx(found.probabilities.tolist(), abs=1e-5)
        assert predictor.predict([]) == []

    def test_the_same_seed_gives_the_same_model(self, tiny_bert, tmp_path):
        parts = data(reviews(32), reviews(8, seed=1))
        weights = []
        for name in ("a", "b"):
            finetune(parts, tmp_path / name, settings(tiny_bert, epochs=1.0))
            weights.append((tmp_path / name / "model.safetensors").read_bytes())
        assert weights[0] == weights[1]


class TestWays:
    def test_rates_are_chosen_on_dev_and_seeds_give_a_spread(self, tiny_bert, tmp_path):
        parts = data(reviews(96), reviews(40, seed=1), reviews(20, seed=2))
        said = []
        chosen = settings(tiny_bert, epochs=2.0, rates=(1e-7, 5e-3), seeds=2)
        result = finetune(parts, tmp_path / "m", chosen, say=said.append)
        assert [(run.rate, run.seed) for run in result.runs] == [(1e-7, 0), (5e-3, 0), (5e-3, 1)]
        scores = [run.dev["accuracy"] for run in result.runs]
        assert scores[result.best] == max(scores) and result.best > 0
        mean, deviation = result.spread["test accuracy"]
        both = [run.test["accuracy"] for run in result.runs[1:]]
        assert mean == pytest.approx(sum(both) / 2)
        assert deviation == pytest.approx(abs(both[0] - both[1]) / 2**0.5)
        assert said[0].startswith("run 1 of 2: learning rate 1e-07")
        kept = Predictor.load(tmp_path / "m", runtime="torch")
        assert kept.task.score(parts.dev, kept.predict(parts.dev))["accuracy"] == max(scores)

    def test_trying_rates_needs_a_dev_split(self, tiny_bert, tmp_path):
        with pytest.raises(UsageError, match="a dev split to choose"):
            finetune(data(reviews(8)), tmp_path / "m", settings(tiny_bert, rates=(1e-3, 1e-4)))

    def test_without_anything_held_out_there_is_a_model_and_no_score(self, tiny_bert, tmp_path):
        result = finetune(data(reviews(16)), tmp_path / "m", settings(tiny_bert, epochs=1.0))
        assert result.reports == [] and (tmp_path / "m" / "config.json").is_file()

    def test_frozen_layers_stay_and_learn_slower_with_decay(self, tiny_bert):
        task = learn_task("classification", reviews(4))
        made = load_for(tiny_bert, task, seed=0)
        freeze(made.model, 1)
        frozen = {name for name, p in made.model.named_parameters() if not p.requires_grad}
        assert all("embeddings" in name or "layer.0." in name for name in frozen)
        assert any("layer.0." in name for name in frozen) and any("embeddings" in name for name in frozen)
        with pytest.raises(UsageError, match="at most 2 layers to freeze, found 3"):
            freeze(made.model, 3)
        freeze(made.model, None)
        assert {name for name, p in made.model.named_parameters() if p.requires_grad} == {
            "classifier.weight",
            "classifier.bias",
        }

    def test_lora_trains_few_weights_and_saves_a_plain_model(self, tiny_bert, tmp_path):
        pytest.importorskip("peft")
        parts = data(reviews(96), reviews(20, seed=1))
        result = finetune(parts, tmp_path / "m", settings(tiny_bert, lora=8, rate=1e-2, epochs=12.0))
        assert result.parameters["trained parameters"] < result.parameters["parameters"] / 2
        assert result.reports[0].metrics["accuracy"] >= 0.75
        _, theirs = reloaded(tmp_path / "m", "AutoModelForSequenceClassification")
        assert not [name for name in theirs.state_dict() if "lora" in name]
        kept = Predictor.load(tmp_path / "m", runtime="torch")
        assert kept.task.score(parts.dev, kept.predict(parts.dev)) == pytest.approx(result.reports[0].metrics)

    def test_accumulated_micro_batches_equal_the_big_batch(self, tiny_bert):
        weights = []
        for size, accumulation in ((16, 1), (4, 4)):
            examples = reviews(16)
            task = learn_task("classification", examples)
            made = load_for(tiny_bert, task, seed=0)
            for module in made.model.modules():
                if isinstance(module, torch.nn.Dropout):
                    module.p = 0.0
            rows = task.rows(examples, task.encode(examples, made.windows()))
            training = TrainingSettings(
                steps=1, learning_rate=1e-2, accumulation=accumulation, precision="float32", epsilon=1.0
            )
            train(made.model, task.objective(pad_id=0), RowBatches(rows, size=size, seed=0), training)
            weights.append(torch.cat([p.detach().flatten() for p in made.model.parameters()]))
        assert torch.allclose(*weights, atol=1e-6)

    def test_an_interrupted_run_goes_on_and_ends_as_one_that_was_not(self, tiny_bert, tmp_path):
        parts = data(reviews(64), reviews(16, seed=1))
        whole = finetune(parts, tmp_path / "whole", settings(tiny_bert, epochs=3.0))

        def stop(event):
            if isinstance(event, Progress) and event.step >= 5:
                signal.raise_signal(signal.SIGINT)

        half = finetune(parts, tmp_path / "half", settings(tiny_bert, epochs=3.0), listeners=[stop])
        assert half.status == "interrupted" and not (tmp_path / "half" / "config.json").exists()
        with pytest.raises(EncoderError, match="found a run that is not finished"):
            Predictor.load(tmp_path / "half")
        done = finetune(parts, tmp_path / "half", settings(tiny_bert, epochs=3.0))
        assert done.reports[0].metrics == whole.reports[0].metrics
        files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "half")]
        assert files[0] == files[1]

    def test_settings_that_do_not_fit(self, tiny_bert, tmp_path):
        with pytest.raises(UsageError, match="at most 64 tokens"):
            finetune(data(reviews(8)), tmp_path, settings(tiny_bert, length=65))
        with pytest.raises(UsageError, match="LoRA freezes"):
            settings(tiny_bert, lora=4, freeze_layers=1)
        with pytest.raises(UsageError, match="expected the frozen head tokens for tagging, found probe"):
            settings(tiny_bert, "tagging", frozen="probe")
        with pytest.raises(UsageError, match="class weights are for classification"):
            settings(tiny_bert, "regression", balanced=True)

    def test_cut_texts_are_said(self, tiny_bert, tmp_path):
        examples = [TextExample(("good " * 100 if at % 2 else "bad",), "ab"[at % 2]) for at in range(8)]
        said = []
        first = settings(tiny_bert, epochs=1.0, long_text="first")
        result = finetune(data(examples), tmp_path / "m", first, say=said.append)
        assert result.truncated == 4 and "4 of 8 training texts are longer than 64 tokens" in said[0]
        said.clear()
        whole = finetune(data(examples), tmp_path / "w", settings(tiny_bert, epochs=1.0), say=said.append)
        assert whole.truncated == 0
        assert "4 of 8 training texts are longer than 64 tokens and are read in windows, 12 in all" in said[0]

    def test_windows_of_pairs_see_both_ends(self, tiny_bert, tmp_path):
        pairs = [TextExample((e.texts[0], "film"), e.label) for e in reviews(16)]
        finetune(data(pairs), tmp_path / "m", settings(tiny_bert, pair=True, epochs=1.0))
        model = Predictor.load(tmp_path / "m", runtime="torch")
        filler = "film plot it was a the " * 20
        for side in (0, 1):
            texts = [["film", "film"], ["film", "film"]]
            texts[0][side], texts[1][side] = f"{filler} good", f"{filler} bad"
            [one, other] = model.predict_texts(*map(list, zip(*texts, strict=True)))
            assert abs(one.probability - other.probability) > 1e-4
        assert model.predict_counted([TextExample((filler, filler))])[1] == 0

    def test_windows_see_the_end_of_a_long_text(self, tiny_bert, tmp_path):
        filler = "film plot it was a the " * 20
        pair = [f"{filler} good", f"{filler} bad"]
        for long_text, differs in (("first", False), ("windows", True)):
            made = settings(tiny_bert, epochs=1.0, long_text=long_text)
            finetune(data(reviews(16)), tmp_path / long_text, made)
            one, other = Predictor.load(tmp_path / long_text, runtime="torch").predict_texts(pair)
            assert (abs(one.probability - other.probability) > 1e-4) == differs

    def test_a_hundred_thousand_labels(self, tiny_bert, tmp_path):
        examples = [TextExample((f"film {number}",), f"label {number}") for number in range(100_000)]
        task = learn_task("classification", examples)
        made = load_for(tiny_bert, task, seed=0)
        rows = task.rows(examples[:32], task.encode(examples[:32], made.windows()))
        training = TrainingSettings(steps=2, learning_rate=1e-3, precision="float32")
        train(made.model, task.objective(pad_id=0), RowBatches(rows, size=16, seed=0), training)
        save(made, task, tmp_path / "m", more={})
        predictor = Predictor.load(tmp_path / "m", runtime="torch")
        [found] = predictor.predict_texts(["film 1"])
        assert len(found.labels) == 100_000 and len(found.to_json()["probabilities"]) == 10
        assert predictor.task.score(examples[:1], [found])["accuracy"] in (0.0, 1.0)


def test_the_watched_metric_is_the_task_s(tiny_bert, tmp_path):
    events = []
    finetune(
        data(reviews(32), reviews(8, seed=1)),
        tmp_path / "m",
        settings(tiny_bert, epochs=2.0),
        listeners=[events.append],
    )
    evaluations = [event for event in events if isinstance(event, Evaluated)]
    assert len(evaluations) == 2 and set(evaluations[0].metrics) == {"accuracy", "macro_f1", "matthews", "f1"}
