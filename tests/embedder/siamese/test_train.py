"""Siamese training from files to a directory, on a model that trains in seconds."""

from __future__ import annotations

import json
import signal
import warnings
from dataclasses import replace

import numpy as np
import pytest

from likewise import Encoder
from likewise.embedder.events import Evaluated, Progress
from likewise.embedder.hash_encoder import HashEncoder
from likewise.embedder.siamese import train as train_module
from likewise.embedder.siamese.settings import TrainingData
from likewise.embedder.siamese.tasks import LossSettings
from likewise.embedder.siamese.train import train_siamese
from likewise.errors import CheckpointError

from .toy_pairs import WORDS, rows, run_settings, write

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class TestRun:
    def test_result_is_a_model_for_everybody(self, base, scored, tmp_path):
        events = []
        result = train_siamese(
            [TrainingData(source=scored, loss="cosent")],
            tmp_path / "model",
            run_settings(base, loop={"epochs": 3}, keep_worse=True),
            held_out=[TrainingData(source=scored, loss="cosent")],
            listeners=[events.append],
        )
        assert (result.training.status, result.training.step, result.kept) == ("finished", 18, "trained")
        assert result.data.rows == {"scored": 48} and result.data.held_out == {"scored": 48}
        assert result.data.shared == 48 and any("training data too" in n for n in result.data.notices)
        [spearman, pearson] = result.verdict.comparisons
        assert (spearman.metric, pearson.metric) == ("scored.spearman", "scored.pearson")
        assert isinstance(events[0], Evaluated) and events[0].step == 0
        assert events[0].metrics["scored.spearman"] == pytest.approx(spearman.before.value)
        assert spearman.after.value == pytest.approx(result.training.metrics["scored.spearman"], abs=1e-6)
        # Trained and measured on the same rows: it must have learned them.
        assert result.verdict.outcome == "better" and spearman.gain.low > 0
        assert spearman.before.low <= spearman.before.value <= spearman.before.high
        card = (tmp_path / "model" / "README.md").read_text("utf-8")
        assert "library_name: sentence-transformers" in card and "| rows of scored | 48 |" in card
        assert "The trained model is better: scored.spearman" in card and "processor" in card
        assert json.loads((tmp_path / "model" / "metrics.json").read_text())["outcome"] == "better"

        ours = Encoder.load(tmp_path / "model", runtime="torch").encode_passages(WORDS)
        from sentence_transformers import SentenceTransformer

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(WORDS)
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
        assert np.abs(ours - Encoder.load(base, runtime="torch").encode_passages(WORDS)).max() > 0.01

    @pytest.mark.parametrize("loss", ["cosent", "angle", "cosine"])
    def test_scored_losses_fall(self, base, scored, tmp_path, loss):
        losses = []
        train_siamese(
            [TrainingData(source=scored, loss=loss)],
            tmp_path / "model",
            run_settings(base, loop={"epochs": 12}, held_out=0.0),
            listeners=[lambda e: losses.append(e.metrics["loss"]) if isinstance(e, Progress) else None],
        )
        assert np.mean(losses[-6:]) < 0.9 * np.mean(losses[:6])

    @pytest.mark.parametrize(
        ("loss", "settings"),
        [
            ("ranking", LossSettings()),
            ("ranking", LossSettings(symmetric=True, dimensions=(32, 8))),
            ("triplet", LossSettings(metric="euclidean", margin=1.0)),
        ],
    )
    def test_losses_with_positives(self, base, asked, tmp_path, loss, settings):
        result = train_siamese(
            [TrainingData(source=asked, loss=loss, settings=settings)],
            tmp_path / "model",
            run_settings(base, loop={"epochs": 4}, held_out=0.2, keep_worse=True),
        )
        names = [c.metric for c in result.verdict.comparisons]
        assert names == [
            "asked-held-out.mrr",
            "asked-held-out.accuracy",
            "asked-held-out-triplets.accuracy",
        ]
        assert result.data.held_out == {"asked-held-out": 8} and result.data.rows == {"asked": 32}
        assert result.data.shared == 0
        assert "loss" in result.training.metrics

    def test_softmax_drops_its_classifier(self, base, tmp_path):
        nli = write(
            tmp_path / "nli.jsonl",
            [
                {"premise": f"{w} {n}", "hypothesis": f"{w} is {n}", "label": label}
                for w in WORDS
                for n, label in enumerate(["entailment", "neutral", "contradiction", "-"])
            ],
        )
        result = train_siamese(
            [TrainingData(source=nli, loss="softmax")],
            tmp_path / "model",
            run_settings(base, held_out=0.3, keep_worse=True),
        )
        assert "10 rows without an agreed class" in result.data.notices[0]
        assert "nli-held-out.average_precision" in {c.metric for c in result.verdict.comparisons}
        assert Encoder.load(tmp_path / "model", runtime="torch").dimension == 32

    def test_simcse_and_distillation_need_no_pairs(self, base, tmp_path):
        texts = write(tmp_path / "texts.jsonl", [{"text": f"{a} {b}"} for a in WORDS for b in WORDS])
        for loss, teacher in (("simcse", None), ("tsdae", None), ("distillation", "hash:32")):
            result = train_siamese(
                [TrainingData(source=texts, loss=loss)],
                tmp_path / loss,
                run_settings(base, teacher=teacher, loop={"epochs": 2}),
            )
            assert result.verdict.outcome == "not measured" and result.kept == "trained"
            assert "is not known" in (tmp_path / loss / "README.md").read_text("utf-8")
        before = Encoder.load(base, runtime="torch").encode_passages(WORDS)
        after = Encoder.load(tmp_path / "distillation", runtime="torch").encode_passages(WORDS)
        wanted = HashEncoder(32).encode_passages(WORDS)
        assert (after * wanted).sum(1).mean() > (before * wanted).sum(1).mean()

    def test_several_data_sets_with_losses_and_weights(self, base, scored, asked, tmp_path):
        seen: dict[str, int] = {}
        result = train_siamese(
            [
                TrainingData(source=scored, loss="cosent", weight=0.5),
                TrainingData(source=asked, loss="ranking", weight=2.0),
            ],
            tmp_path / "model",
            run_settings(base, held_out=0.0),
            listeners=[
                lambda e: (
                    [seen.__setitem__(n, seen.get(n, 0) + 1) for n in e.metrics if n in ("scored", "asked")]
                    if isinstance(e, Progress)
                    else None
                )
            ],
        )
        assert seen == {"scored": 3, "asked": 10}  # 24 and 80 rows in batches of 8
        assert result.training.step == 13

    def test_the_held_out_loss_uses_the_right_head(self, base, scored, tmp_path):
        nli = write(
            tmp_path / "nli.jsonl",
            [{"premise": f"{w} 1", "hypothesis": f"{w} 2", "label": n % 3} for n, w in enumerate(WORDS)],
        )
        other = write(
            tmp_path / "other.jsonl",
            [{"premise": f"{w} 1", "hypothesis": f"{w} 2", "label": n % 2} for n, w in enumerate(WORDS)],
        )
        softmax = TrainingData(source=nli, loss="softmax")
        cosent = TrainingData(source=scored, loss="cosent")
        settings = run_settings(base)
        result = train_siamese([cosent, softmax], tmp_path / "m", settings, held_out=[softmax])
        # log 3 is chance; the classifier of the second data set is at most a little better or worse.
        assert 0.5 < result.training.metrics["loss"] < 2
        # Two classes do not fit a classifier of three: no loss, and nothing else says anything.
        unlike = replace(softmax, source=other)
        assert train_siamese([softmax], tmp_path / "n", settings, held_out=[unlike]).training.metrics == {}


class TestReproducibility:
    def vectors(self, folder):
        return Encoder.load(folder, runtime="torch").encode_passages(WORDS)

    def test_a_seed_gives_the_same_weights_and_another_does_not(self, base, asked, tmp_path):
        for name, seed in (("a", 0), ("b", 0), ("c", 1)):
            train_siamese(
                [TrainingData(source=asked, loss="ranking")],
                tmp_path / name,
                run_settings(base, loop={"seed": seed}, held_out=0.0),
            )
        a, b, c = (self.vectors(tmp_path / name) for name in "abc")
        assert np.array_equal(a, b) and not np.array_equal(a, c)

    @pytest.mark.parametrize("part_tokens", [None, 40])
    def test_an_interrupted_run_ends_with_the_same_weights(self, base, asked, tmp_path, part_tokens):
        settings = run_settings(
            base, loop={"epochs": 2}, part_tokens=part_tokens, held_out=0.2, keep_worse=True
        )
        data = [TrainingData(source=asked, loss="ranking")]
        train_siamese(data, tmp_path / "whole", settings)

        def stop(event):
            if isinstance(event, Progress) and event.step == 5:
                signal.raise_signal(signal.SIGINT)

        first = train_siamese(data, tmp_path / "stopped", settings, listeners=[stop])
        assert first.training.status == "interrupted" and first.kept == "nothing yet"
        assert not (tmp_path / "stopped" / "modules.json").exists()
        steeper = replace(data[0], settings=LossSettings(scale=40.0))
        with pytest.raises(CheckpointError, match=r"losses was .*'scale': 20.0.*, now .*'scale': 40.0"):
            train_siamese([steeper], tmp_path / "stopped", settings)
        second = train_siamese(data, tmp_path / "stopped", settings)
        assert second.training.status == "finished"
        assert np.array_equal(self.vectors(tmp_path / "whole"), self.vectors(tmp_path / "stopped"))

    def test_parts_give_what_the_whole_batch_gives(self, base, asked, tmp_path):
        for name, part_tokens in (("whole", None), ("parts", 40)):
            settings = run_settings(base, part_tokens=part_tokens, held_out=0.0, batch_size=40)
            train_siamese([TrainingData(source=asked, loss="ranking")], tmp_path / name, settings)
        # Dropout differs, as the parts draw it one after another; without it only rounding would.
        assert np.abs(self.vectors(tmp_path / "whole") - self.vectors(tmp_path / "parts")).max() < 0.05


class TestVerdict:
    def test_a_worse_model_is_not_passed_off_as_better(self, base, scored, tmp_path):
        wrong = write(tmp_path / "wrong.jsonl", [row | {"score": 1 - row["score"]} for row in rows()])
        data = [TrainingData(source=wrong, loss="cosent")]
        truth = [TrainingData(source=scored, loss="cosent")]
        result = train_siamese(
            data, tmp_path / "model", run_settings(base, loop={"epochs": 4}), held_out=truth
        )
        assert result.verdict.outcome == "worse" and result.kept == "base"
        np.testing.assert_allclose(
            Encoder.load(tmp_path / "model", runtime="torch").encode_passages(WORDS),
            Encoder.load(base, runtime="torch").encode_passages(WORDS),
            atol=1e-6,
        )
        card = (tmp_path / "model" / "README.md").read_text("utf-8")
        assert "worse than the one it started from" in card and "the trained ones were no better" in card
        forced = train_siamese(
            data,
            tmp_path / "forced",
            run_settings(base, loop={"epochs": 4}, keep_worse=True),
            held_out=truth,
        )
        assert forced.verdict.outcome == "worse" and forced.kept == "trained"

    def test_a_loss_chooses_weights_but_gives_no_verdict(self, base, scored, tmp_path):
        data = [TrainingData(source=scored, loss="cosent")]
        held_out = [TrainingData(source=scored, loss="cosent")]
        settings = run_settings(base, loop={"steps": 13, "epochs": None}, watch="loss")
        events = []
        result = train_siamese(data, tmp_path / "m", settings, held_out=held_out, listeners=[events.append])
        assert result.verdict.metric == "scored.spearman" and result.verdict.outcome != "not measured"
        # A budget of steps is evaluated after every epoch too: 48 rows are 6 batches.
        evaluated = [event for event in events if isinstance(event, Evaluated)]
        assert [event.step for event in evaluated] == [0, 6, 12, 13]
        best = min(evaluated[1:], key=lambda event: event.metrics["loss"])
        assert result.training.metrics == best.metrics

    def test_blending_moves_towards_the_base(self, base, scored, tmp_path):
        for name, blend in (("own", 0.0), ("half", 0.5)):
            train_siamese(
                [TrainingData(source=scored, loss="cosent")],
                tmp_path / name,
                run_settings(base, blend=blend, held_out=0.0, loop={"epochs": 3}),
            )
        texts = {
            name: Encoder.load(folder, runtime="torch").encode_passages(WORDS)
            for name, folder in (("base", base), ("own", tmp_path / "own"), ("half", tmp_path / "half"))
        }
        apart = {name: float((texts[name] * texts["base"]).sum(1).mean()) for name in ("own", "half")}
        assert apart["own"] < apart["half"] < 1

    def test_only_the_cached_form_asks_for_large_blocks_back(self, base, scored, tmp_path, monkeypatch):
        asked_for: list[str] = []
        monkeypatch.setattr(train_module, "give_back_large_blocks", lambda: asked_for.append("blocks"))
        for part_tokens, expected in ((None, []), (64, ["blocks"])):
            train_siamese(
                [TrainingData(source=scored, loss="cosent")],
                tmp_path / str(part_tokens),
                run_settings(base, part_tokens=part_tokens, held_out=0.0),
            )
            assert asked_for == expected

    def test_a_teacher_is_left_in_peace_without_dropout(self, base, tmp_path):
        # A student that is its teacher has nothing to learn from it, unless dropout moves its vectors.
        texts = write(tmp_path / "texts.jsonl", [{"text": f"{a} {b}"} for a in WORDS for b in WORDS])
        losses = {}
        for dropout in (0.0, None):
            train_siamese(
                [TrainingData(source=texts, loss="distillation", settings=LossSettings(measure="cosine"))],
                tmp_path / str(dropout),
                run_settings(base, teacher=str(base), dropout=dropout, held_out=0.0),
            )
            log = (tmp_path / str(dropout) / "training" / "log.jsonl").read_text("utf-8").splitlines()
            losses[dropout] = json.loads(log[0])["metrics"]["loss"]
        assert losses[0.0] < 1e-5 < 1e-3 < losses[None]

    def test_frozen_layers_stay(self, base, scored, tmp_path):
        from safetensors.numpy import load_file

        train_siamese(
            [TrainingData(source=scored, loss="cosent")],
            tmp_path / "model",
            run_settings(base, freeze=1, held_out=0.0),
        )
        old, new = load_file(base / "model.safetensors"), load_file(tmp_path / "model" / "model.safetensors")
        changed = {name for name in new if not np.array_equal(old[name], new[name])}
        assert changed and all("encoder.layer.1." in name for name in changed)
