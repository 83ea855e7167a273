"""A head alone, on the kept vectors of a frozen encoder."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from likewise.embedder.heads.data import TextExample
from likewise.embedder.heads.finetune import finetune
from likewise.embedder.heads.frozen import FrozenHead
from likewise.embedder.heads.predictor import Predictor
from likewise.errors import EncoderError, UsageError

from .finetuning import BAD, GOOD, data, reviews, settings, short_reviews


class TestFrozen:
    @pytest.mark.parametrize("head", ["probe", "linear", "mlp"])
    def test_a_head_on_kept_vectors(self, tiny_bert, tmp_path, head):
        parts = data(short_reviews(100), short_reviews(40, seed=1), short_reviews(40, seed=2))
        rate = {"rate": 1e-2, "epochs": 30.0}
        result = finetune(parts, tmp_path / "m", settings(tiny_bert, frozen=head, **rate))
        assert result.reports[1].metrics["accuracy"] >= 0.95
        loaded = Predictor.load(tmp_path / "m")
        assert isinstance(loaded, FrozenHead)
        assert loaded.task.score(parts.test, loaded.predict(parts.test)) == pytest.approx(
            result.reports[1].metrics
        )
        shutil.copytree(tmp_path / "m", tmp_path / "moved")
        assert (
            loaded.predict_texts(["a joy"])[0].label
            == Predictor.load(tmp_path / "moved").predict_texts(["a joy"])[0].label
        )

    def test_vectors_are_computed_once(self, tiny_bert, tmp_path, monkeypatch):
        from likewise.embedder.encoder import Encoder

        parts = data([TextExample((f"{e.texts[0]} key",), e.label) for e in reviews(40, seed=5)])
        seen = []
        embed = Encoder.embed
        monkeypatch.setattr(
            Encoder, "embed", lambda self, texts, **o: seen.extend(texts) or embed(self, texts, **o)
        )
        finetune(parts, tmp_path / "a", settings(tiny_bert, frozen="linear", epochs=2.0))
        first = [text for text in seen if text.endswith("key")]
        assert len(first) == len(set(first)) == len({e.texts[0] for e in parts.train})
        seen.clear()
        finetune(parts, tmp_path / "b", settings(tiny_bert, frozen="mlp", epochs=2.0))
        assert not [text for text in seen if text.endswith("key")]

    def test_numbers_pairs_and_several_labels(self, tiny_bert, tmp_path):
        rng = np.random.default_rng(0)
        pairs = []
        for _ in range(80):
            first, second = (str(rng.choice([*GOOD, *BAD])) for _ in range(2))
            pairs.append(TextExample((first, second), float(first in GOOD) + float(second in GOOD)))
        chosen = settings(tiny_bert, "regression", pair=True, frozen="probe")
        result = finetune(data(pairs[:60], pairs[60:]), tmp_path / "r", chosen)
        assert result.reports[0].metrics["spearman"] > 0.5
        several = [
            TextExample(e.texts, (e.label,) if e.label == "Positive" else ()) for e in short_reviews(80)
        ]
        chosen = settings(tiny_bert, "multilabel", frozen="probe")
        found = finetune(data(several[:60], several[60:]), tmp_path / "m", chosen)
        assert found.reports[0].metrics["micro_f1"] > 0.7

    def test_another_encoder_in_the_folder_is_refused(self, tiny_bert, tmp_path):
        finetune(data(reviews(20)), tmp_path / "m", settings(tiny_bert, frozen="probe"))
        record = json.loads((tmp_path / "m" / "likewise.json").read_text("utf-8"))
        record["frozen"]["fingerprint"] = "0" * 64
        (tmp_path / "m" / "likewise.json").write_text(json.dumps(record), "utf-8")
        with pytest.raises(EncoderError, match="not the one that the head was trained on"):
            Predictor.load(tmp_path / "m")

    def test_a_probe_of_many_labels_is_refused(self, tiny_bert, tmp_path):
        many = [TextExample((f"film {n}",), str(n)) for n in range(300)]
        with pytest.raises(UsageError, match="at most 200 labels") as caught:
            finetune(data(many), tmp_path, settings(tiny_bert, frozen="probe"))
        assert caught.value.remedy == "--head linear"
