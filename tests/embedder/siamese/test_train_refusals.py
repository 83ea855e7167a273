"""What siamese training refuses, and what it says then."""

from __future__ import annotations

import pytest

from likewise.embedder.siamese.settings import TrainingData
from likewise.embedder.siamese.tasks import LossSettings
from likewise.embedder.siamese.train import train_siamese
from likewise.errors import DataError, TrainingError, UsageError

from .toy_pairs import WORDS, run_settings, write

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class TestRefused:
    @pytest.mark.parametrize("loss", ["ranking", "cosent", "simcse"])
    def test_accumulating_what_does_not_add_up(self, base, asked, scored, tmp_path, loss):
        data = TrainingData(
            source=scored if loss == "cosent" else asked,
            loss=loss,
            columns={"negative_1": "", "positive": ""} if loss == "simcse" else {},
        )
        with pytest.raises(UsageError, match=f"the loss {loss} compares the examples") as caught:
            train_siamese([data], tmp_path / "m", run_settings(base, loop={"accumulation": 2}))
        assert "--part-tokens" in caught.value.remedy

    def test_a_batch_of_one(self, base, asked, tmp_path):
        with pytest.raises(DataError, match="in a batch of one the loss ranking has nothing to compare"):
            train_siamese(
                [TrainingData(source=asked, loss="ranking")], tmp_path / "m", run_settings(base, batch_size=1)
            )

    def test_one_row(self, base, tmp_path):
        one = write(tmp_path / "one.jsonl", [{"anchor": "a", "positive": "b"}])
        with pytest.raises(DataError, match="needs at least two rows, found 1"):
            train_siamese([TrainingData(source=one, loss="ranking")], tmp_path / "m", run_settings(base))
        scored = write(tmp_path / "scored.jsonl", [{"anchor": "a", "positive": "b", "score": 0.5}])
        result = train_siamese(
            [TrainingData(source=scored, loss="cosine")], tmp_path / "fine", run_settings(base)
        )
        assert result.training.step == 1 and "too few unrelated rows" in result.data.notices[0]

    @pytest.mark.parametrize(
        ("loss", "label"), [("contrastive", lambda n: int(n == 0)), ("cosent", lambda n: int(n == 0))]
    )
    def test_held_out_rows_that_are_all_alike_measure_nothing(self, base, tmp_path, loss, label):
        content = [{"anchor": f"{w} 1", "positive": f"{w} 2", "label": label(n)} for n, w in enumerate(WORDS)]
        data = [TrainingData(source=write(tmp_path / "few.jsonl", content), loss=loss)]
        result = train_siamese(data, tmp_path / "m", run_settings(base, held_out=0.2))
        assert result.data.held_out == {} and result.data.rows == {"few": 10}
        assert "too few" in result.data.notices[0] and result.verdict.outcome == "not measured"

    def test_nothing_at_all(self, base, tmp_path):
        with pytest.raises(UsageError, match="at least one data set"):
            train_siamese([], tmp_path / "m", run_settings(base))

    def test_a_teacher_is_needed(self, base, tmp_path):
        texts = write(tmp_path / "texts.jsonl", [{"text": "a"}, {"text": "b"}])
        with pytest.raises(UsageError, match="needs a teacher"):
            train_siamese(
                [TrainingData(source=texts, loss="distillation")], tmp_path / "m", run_settings(base)
            )

    def test_a_watched_metric_must_exist(self, base, scored, tmp_path):
        data = [TrainingData(source=scored, loss="cosent")]
        with pytest.raises(UsageError, match=r"out of scored-held-out.spearman, .*, loss, found 'ndcg'"):
            train_siamese(data, tmp_path / "m", run_settings(base, watch="ndcg"))
        with pytest.raises(UsageError, match="nothing is held out"):
            train_siamese(data, tmp_path / "n", run_settings(base, watch="ndcg", held_out=0.0))

    def test_simcse_without_dropout(self, base, asked, tmp_path):
        data = [TrainingData(source=asked, loss="simcse", columns={"negative_1": "", "positive": ""})]
        with pytest.raises(UsageError, match="the two views that simcse compares are one"):
            train_siamese(data, tmp_path / "m", run_settings(base, dropout=0.0))

    def test_nan_stops_and_keeps_the_last_checkpoint(self, base, scored, tmp_path):
        data = [TrainingData(source=scored, loss="cosine", settings=LossSettings())]
        with pytest.raises(TrainingError, match="training stopped at step"):
            train_siamese(
                data,
                tmp_path / "m",
                run_settings(base, held_out=0.0, loop={"learning_rate": 1e30, "epochs": 5, "save_every": 1}),
            )
        assert list((tmp_path / "m" / "training" / "checkpoints").glob("step-*"))

    @pytest.mark.parametrize(
        "changes",
        [{"batch_size": 0}, {"held_out": 1.0}, {"blend": -0.1}, {"part_tokens": 0}, {"dropout": 1.0}],
    )
    def test_settings_that_make_no_sense(self, base, changes):
        with pytest.raises(UsageError, match="expected"):
            run_settings(base, **changes)

    @pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
    def test_a_factor_that_makes_no_sense(self, factor):
        with pytest.raises(UsageError, match="a finite factor above 0"):
            LossSettings(factor=factor)
