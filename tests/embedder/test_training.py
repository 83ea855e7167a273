from __future__ import annotations

import importlib.util
import math
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from likewise.embedder.batches import FixedBatches, Stage
from likewise.embedder.events import Evaluated, Progress, Saved, Started
from likewise.embedder.objectives import add_counts
from likewise.embedder.training import train
from likewise.embedder.training_settings import TrainingSettings
from likewise.errors import CheckpointError, DataError, TrainingError, UsageError

TOY = Path(__file__).with_name("toy_training.py")
_spec = importlib.util.spec_from_file_location("toy_training", TOY)
toy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(toy)


def settings(**changes) -> TrainingSettings:
    if not {"epochs", "minutes"} & changes.keys():
        changes.setdefault("steps", 20)
    return TrainingSettings(
        **{"learning_rate": 0.01, "log_every": 1, "precision": "float32", "save_every": None} | changes
    )


def weights(model) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in model.state_dict().items()}


class StopAt:
    """Raises Ctrl-C's signal when a step is reported."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, event) -> None:
        if isinstance(event, Progress) and event.step == self.step:
            signal.raise_signal(signal.SIGINT)


class TestLearning:
    def test_learns_the_toy_task(self):
        model = toy.toy_model(dropout=0.0)
        events = []
        result = train(
            model, toy.NextNumber(terms=1), toy.Shuffled(), settings(steps=300), listeners=[events.append]
        )
        reports = [event for event in events if isinstance(event, Progress)]
        assert result.status == "finished" and result.step == 300
        assert reports[-1].metrics["accuracy"] == 1.0
        assert reports[-1].metrics["loss"] < reports[0].metrics["loss"] / 4
        assert reports[-1].progress == 1.0 and reports[-1].remaining == 0.0
        assert all(report.tokens_per_second > 0 for report in reports)

    def test_same_seed_same_weights(self):
        runs = []
        for seed in (1, 1, 2):
            model = toy.toy_model()
            train(model, toy.NextNumber(), toy.Shuffled(), settings(seed=seed))
            runs.append(weights(model))
        assert runs[0] == runs[1]
        assert runs[0] != runs[2]

    def test_leaves_the_global_generator_alone(self):
        torch.manual_seed(5)
        expected = torch.rand(3)
        torch.manual_seed(5)
        train(_seedless_model(), toy.NextNumber(), toy.Shuffled(), settings())
        assert torch.equal(torch.rand(3), expected)

    def test_first_and_last_step_have_a_rate_above_zero(self):
        events = []
        train(
            toy.toy_model(),
            toy.NextNumber(),
            toy.Shuffled(),
            settings(steps=10, warmup=0.2),
            listeners=[events.append],
        )
        rates = [event.learning_rate for event in events if isinstance(event, Progress)]
        # Middle of step k is (k + 0.5) / 10: rise over 0.2, fall over 0.8.
        expected = [0.01 * f for f in (0.25, 0.75, *((1 - (k + 0.5) / 10) / 0.8 for k in range(2, 10)))]
        assert rates == pytest.approx(expected)

    def test_frozen_parameters_stay(self):
        model = toy.toy_model()
        model.norm.weight.requires_grad_(False)
        before = model.norm.weight.clone()
        train(model, toy.NextNumber(), toy.Shuffled(), settings())
        assert torch.equal(model.norm.weight, before)


def _seedless_model():
    state = torch.get_rng_state()
    model = toy.toy_model()
    torch.set_rng_state(state)
    return model


class TestAccumulation:
    @pytest.mark.parametrize("terms", [1, 2])
    def test_gradient_is_that_of_the_big_batch(self, terms):
        objective, data = toy.NextNumber(terms), toy.Shuffled()
        model = toy.toy_model(dropout=0.0).double()
        parts = [data.batch(0, index) for index in range(5)]
        big = objective.prepare([number for part in parts for number in part], draw=0)
        objective.loss(model, big).total().backward()
        expected = [parameter.grad.clone() for parameter in model.parameters()]
        model.zero_grad()
        batches = [objective.prepare(part, draw=0) for part in parts]
        totals = add_counts(objective.counts(batch) for batch in batches)
        for batch in batches:
            objective.loss(model, batch).total(totals).backward()
        for parameter, gradient in zip(model.parameters(), expected, strict=True):
            assert torch.allclose(parameter.grad, gradient, atol=1e-12)

    @pytest.mark.parametrize("terms", [1, 2])
    def test_weights_are_those_of_the_big_batch(self, terms):
        # Five small batches of unequal size per step, and the same examples as one batch per step.
        examples = [number % 11 for number in range(60)]
        small, big = FixedBatches(examples, size=4), FixedBatches(examples, size=20)
        models = [toy.toy_model(dropout=0.0), toy.toy_model(dropout=0.0)]
        for model, data, accumulation in zip(models, (small, big), (5, 1), strict=True):
            train(model, toy.NextNumber(terms), data, settings(steps=9, accumulation=accumulation, clip=0.1))
        for left, right in zip(*(model.parameters() for model in models), strict=True):
            assert torch.allclose(left, right, atol=1e-6)

    def test_batch_warmup_raises_the_number_of_micro_batches(self):
        chosen = settings(accumulation=8, batch_warmup=0.5)
        assert [chosen.micro_batches(p) for p in (0.0, 0.1, 0.25, 0.49, 0.5, 1.0)] == [1, 2, 4, 7, 8, 8]


class TestBudget:
    @pytest.mark.parametrize(("log_every", "reported"), [(20, [7]), (3, [3, 6, 7]), (7, [7])])
    def test_the_last_steps_are_reported(self, log_every, reported):
        events = []
        train(
            toy.toy_model(),
            toy.NextNumber(),
            toy.Shuffled(),
            settings(steps=7, log_every=log_every),
            listeners=[events.append],
        )
        assert [event.step for event in events if isinstance(event, Progress)] == reported

    def test_epochs_end_with_the_data(self):
        objective = toy.NextNumber()
        result = train(toy.toy_model(), objective, toy.Shuffled(), settings(epochs=3))
        assert (result.step, result.epochs, objective.calls) == (21, 3.0, 21)

    def test_epochs_with_accumulation_leave_no_batch_out(self):
        objective = toy.NextNumber()
        result = train(toy.toy_model(), objective, toy.Shuffled(), settings(epochs=2, accumulation=4))
        assert (result.step, objective.calls) == (4, 14)  # 4 + 4 + 4 + 2 batches

    def test_minutes(self):
        result = train(toy.toy_model(), toy.NextNumber(), toy.Shuffled(), settings(minutes=0.005))
        assert result.status == "finished" and result.step > 0
        assert result.seconds >= 0.3

    def test_stages_switch_data_at_their_progress(self):
        short, long = (
            FixedBatches([1, 2], size=1, fingerprint="a"),
            FixedBatches([3, 4, 5], size=1, fingerprint="b"),
        )
        seen = []

        class Recorder(toy.NextNumber):
            def loss(self, model, batch):
                seen.append(int(batch.ids[0]) if len(batch.ids) else None)
                return super().loss(model, batch)

            def prepare(self, examples, *, draw, progress=0.0):
                return super().prepare(examples, draw=0)

        train(toy.toy_model(), Recorder(), [Stage(0.5, short), Stage(1.0, long)], settings(steps=8))
        assert seen == [1, 2, 1, 2, 3, 4, 5, 3]

    @pytest.mark.parametrize("ends", [[], [0.5], [0.5, 0.5, 1.0], [0.8, 0.5, 1.0], [0.0, 1.0]])
    def test_refuses_stages_out_of_order(self, ends):
        stages = [Stage(end, toy.Shuffled()) for end in ends]
        with pytest.raises(DataError, match="rising progress"):
            train(toy.toy_model(), toy.NextNumber(), stages, settings())


class TestResume:
    @pytest.mark.parametrize("terms", [1, 2])
    @pytest.mark.parametrize("stop", [1, 9, 14])
    @pytest.mark.parametrize(("accumulation", "average"), [(1, 0.0), (3, 0.0), (1, 0.3)])
    def test_weights_equal_those_of_an_uninterrupted_run(self, tmp_path, terms, stop, accumulation, average):
        chosen = settings(accumulation=accumulation, average=average)
        whole = toy.toy_model()
        train(whole, toy.NextNumber(terms), toy.Shuffled(), chosen)
        first = train(
            toy.toy_model(),
            toy.NextNumber(terms),
            toy.Shuffled(),
            chosen,
            folder=tmp_path,
            listeners=[StopAt(stop)],
        )
        assert (first.status, first.step) == ("interrupted", stop)
        resumed, events = toy.toy_model(dropout=0.1), []
        with torch.no_grad():
            resumed.embeddings.weight.zero_()  # the checkpoint must bring everything
        second = train(
            resumed, toy.NextNumber(terms), toy.Shuffled(), chosen, folder=tmp_path, listeners=[events.append]
        )
        assert second.status == "finished" and second.step == 20
        assert isinstance(events[0], Started) and events[0].step == stop
        assert weights(resumed) == weights(whole)

    def test_resumes_in_the_second_stage(self, tmp_path):
        def stages():
            return [Stage(0.4, FixedBatches([1, 2, 3], size=2)), Stage(1.0, toy.Shuffled())]

        whole = toy.toy_model()
        train(whole, toy.NextNumber(), stages(), settings())
        train(
            toy.toy_model(), toy.NextNumber(), stages(), settings(), folder=tmp_path, listeners=[StopAt(11)]
        )
        resumed = toy.toy_model()
        train(resumed, toy.NextNumber(), stages(), settings(), folder=tmp_path)
        assert weights(resumed) == weights(whole)

    @pytest.mark.parametrize("average", [0.0, 0.3])
    def test_a_finished_run_does_nothing_more(self, tmp_path, average):
        model, chosen = toy.toy_model(), settings(average=average)
        train(model, toy.NextNumber(), toy.Shuffled(), chosen, folder=tmp_path)
        objective = toy.NextNumber()
        again = toy.toy_model()
        result = train(again, objective, toy.Shuffled(), chosen, folder=tmp_path)
        assert result.step == 20 and objective.calls == 0
        assert weights(again) == weights(model)

    def test_other_settings_are_refused_by_name(self, tmp_path):
        train(toy.toy_model(), toy.NextNumber(), toy.Shuffled(), settings(), folder=tmp_path)
        before = sorted(path.name for path in tmp_path.iterdir())
        with pytest.raises(CheckpointError) as caught:
            train(
                toy.toy_model(),
                toy.NextNumber(1),
                toy.Shuffled(),
                settings(learning_rate=0.5),
                folder=tmp_path,
                identity={"recipe": "bert"},
            )
        message = str(caught.value)
        assert "settings.learning_rate was 0.01, now 0.5" in message
        assert "objective was 'toy2', now 'toy1'" in message
        assert "recipe was None, now 'bert'" in message
        assert sorted(path.name for path in tmp_path.iterdir()) == before

    def test_logging_settings_may_change(self, tmp_path):
        train(toy.toy_model(), toy.NextNumber(), toy.Shuffled(), settings(), folder=tmp_path)
        result = train(
            toy.toy_model(), toy.NextNumber(), toy.Shuffled(), settings(log_every=7, keep=3), folder=tmp_path
        )
        assert result.step == 20

    def test_ctrl_c_in_a_process_then_resume(self, tmp_path):
        def start(wait: str) -> subprocess.Popen:
            return subprocess.Popen(
                [sys.executable, str(TOY), str(tmp_path), wait, "12:2"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )

        process = start("wait")
        whole = toy.toy_run(tmp_path / "whole", 12, 2)[1]
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate("go on\n", timeout=200)[0].split() == ["interrupted", "5"]
        assert start("go").communicate(timeout=200)[0].split() == ["finished", "12"]
        stopped = torch.load(tmp_path / "12-2" / "weights.pt", weights_only=True)
        assert all(torch.equal(stopped[name], whole[name]) for name in whole)


class TestEvaluation:
    @pytest.mark.parametrize("average", [0.0, 0.5])
    def test_best_weights_are_restored(self, tmp_path, average):
        values = iter([3.0, 1.0, 2.0, 2.5])
        snapshots = []

        def evaluate(model):
            assert not model.training and not torch.is_grad_enabled()
            snapshots.append(weights(model))
            return {"loss": next(values)}

        events = []
        model = toy.toy_model()
        result = train(
            model,
            toy.NextNumber(),
            toy.Shuffled(),
            settings(evaluate_every=5, average=average),
            folder=tmp_path,
            evaluate=evaluate,
            listeners=[events.append],
        )
        assert [event.improved for event in events if isinstance(event, Evaluated)] == [
            True,
            True,
            False,
            False,
        ]
        assert result.metrics == {"loss": 1.0}
        assert result.best.name == "step-000000010" and result.last.name == "step-000000020"
        assert weights(model) == snapshots[1]
        assert sorted(path.name for path in tmp_path.glob("step-*")) == ["step-000000010", "step-000000020"]

    def test_stops_early(self, tmp_path):
        values = iter([0.5, 0.9, 0.8, 0.7, 0.6])
        result = train(
            toy.toy_model(),
            toy.NextNumber(),
            toy.Shuffled(),
            settings(evaluate_every=2, patience=2, watch="score", watch_mode="max"),
            folder=tmp_path,
            evaluate=lambda model: {"score": next(values)},
        )
        assert (result.status, result.step) == ("stopped early", 8)
        assert result.metrics == {"score": 0.9}

    def test_an_unknown_metric_is_named(self):
        with pytest.raises(TrainingError, match=r"watched metric 'loss', found \['accuracy', 'mrr'\]"):
            train(
                toy.toy_model(),
                toy.NextNumber(),
                toy.Shuffled(),
                settings(),
                evaluate=lambda model: {"mrr": 1.0, "accuracy": 0.5},
            )


class TestFailures:
    def test_nan_stops_with_the_last_good_checkpoint(self, tmp_path):
        saved = []
        with pytest.raises(
            TrainingError, match=r"stopped at step 11.*norm of the gradient became nan"
        ) as caught:
            train(
                toy.toy_model(),
                toy.NextNumber(poison=12),
                toy.Shuffled(),
                settings(save_every=5),
                folder=tmp_path,
                listeners=[lambda event: saved.append(event) if isinstance(event, Saved) else None],
            )
        assert "step-000000010" in str(caught.value) and "lower learning rate" in caught.value.remedy
        assert saved[-1].step == 10
        model = toy.toy_model()
        assert (
            train(model, toy.NextNumber(), toy.Shuffled(), settings(save_every=5), folder=tmp_path).step == 20
        )
        whole = toy.toy_model()
        train(whole, toy.NextNumber(), toy.Shuffled(), settings(save_every=5))
        assert weights(model) == weights(whole)

    def test_a_learning_rate_that_diverges(self, tmp_path):
        with pytest.raises(TrainingError, match=r"the loss rose from|became"):
            train(
                toy.toy_model(dropout=0.0),
                toy.NextNumber(1),
                toy.Shuffled(),
                settings(steps=200, learning_rate=50.0, warmup=0.0),
                folder=tmp_path,
            )

    def test_a_model_that_is_ruined_before_the_first_report(self):
        # Compared with the loss of the first step: the first report is the mean of ruined steps.
        with pytest.raises(TrainingError, match=r"stopped at step 20: the loss rose from [0-9.]+ to"):
            train(
                toy.toy_model(dropout=0.0),
                toy.NextNumber(1),
                toy.Shuffled(),
                settings(steps=200, learning_rate=50.0, warmup=0.0, log_every=20),
            )

    def test_weights_before_the_bad_step_are_untouched(self):
        model = toy.toy_model()
        with pytest.raises(TrainingError):
            train(model, toy.NextNumber(poison=1), toy.Shuffled(), settings())
        assert weights(model) == weights(toy.toy_model())

    def test_all_frozen(self):
        model = toy.toy_model()
        model.requires_grad_(False)
        with pytest.raises(TrainingError, match="trainable"):
            train(model, toy.NextNumber(), toy.Shuffled(), settings())

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"steps": None}, "exactly one budget.*found none"),
            ({"steps": 1, "epochs": 1.0}, "found steps and epochs"),
            ({"learning_rate": 0.0}, "learning_rate above 0"),
            ({"learning_rate": math.nan}, "learning_rate above 0"),
            ({"steps": 0}, "steps above 0"),
            ({"batch_warmup": 0.5}, "only one"),
            ({"schedule": "sudden"}, "linear, cosine, wsd, constant"),
            ({"warmup": 1.0}, "warm-up share"),
            ({"precision": "float16"}, "float16"),
            ({"watch_mode": "low"}, "min or max"),
            ({"weight_decay": -1.0}, "weight decay"),
            ({"average": -0.1}, "average over a share"),
            ({"average": math.nan}, "average over a share"),
        ],
    )
    def test_settings_that_make_no_sense(self, changes, message):
        with pytest.raises(UsageError, match=message):
            train(toy.toy_model(), toy.NextNumber(), toy.Shuffled(), settings(**changes))


def test_probe_leaves_weights_and_gradients_alone(monkeypatch):
    from likewise.embedder import precision

    monkeypatch.setattr(precision, "_gain", lambda work, device, *, repeats: work() is None or 1.0)
    models = [toy.toy_model(), toy.toy_model()]
    for model, wish in zip(models, ("auto", "float32"), strict=True):
        result = train(model, toy.NextNumber(), toy.Shuffled(), settings(precision=wish))
        assert result.precision == "float32"
    assert weights(models[0]) == weights(models[1])
