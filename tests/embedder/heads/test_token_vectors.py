"""Heads on kept token vectors: the same logits as through the encoder, which runs once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from likewise.embedder.heads import token_vectors
from likewise.embedder.heads.conll import tagged
from likewise.embedder.heads.data import Answer, QuestionExample
from likewise.embedder.heads.dataset import Data
from likewise.embedder.heads.finetune import finetune
from likewise.embedder.heads.finetune_settings import FinetuneSettings
from likewise.embedder.heads.modeling import load_for
from likewise.embedder.heads.predictor import Predictor, predict_logits
from likewise.embedder.heads.readers import Reading
from likewise.embedder.heads.scoring import TorchHead
from likewise.embedder.heads.tasks import learn_task
from likewise.embedder.heads.token_vectors import StateObjective, TokenVectors
from likewise.embedder.training_settings import TrainingSettings
from likewise.errors import UsageError

NAMES = [tagged(["ann", "lives", "in", "london"], ["B-PER", "O", "O", "B-LOC"]), tagged(["fox"], ["O"])]
NAMES += [tagged(["bob", "film", "北", "京"] * 12, ["B-PER", "O", "B-LOC", "I-LOC"] * 12)]
ASKED = [
    QuestionExample("who ?", "ann lives in london", (Answer("ann", 0),)),
    QuestionExample("where ?", "it was " * 20 + "paris", (Answer("paris", 140),)),
]


def settings(model: Path, kind: str, **changes) -> FinetuneSettings:
    training = TrainingSettings(epochs=3.0, learning_rate=1e-2, precision="float32", log_every=5)
    options = {"frozen": "tokens", "model": str(model), "batch_size": 2, "length": 32, "device": None}
    return FinetuneSettings(reading=Reading(kind=kind), training=training, **options | changes)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "distilbert", "albert", "modernbert", "mpnet"])
@pytest.mark.parametrize("examples", [NAMES, ASKED], ids=["tagging", "questions"])
def test_logits_and_loss_are_those_of_the_whole_model(
    architecture, examples, tiny_bert, plain_checkpoint, tmp_path
):
    folder = tiny_bert if architecture == "bert" else plain_checkpoint(architecture)
    task = learn_task("tagging" if examples is NAMES else "questions", examples, length=32, overlap=8)
    made = load_for(folder, task, seed=0)
    made.model.eval()
    tokenizer = made.windows()
    encoded = task.encode(examples, tokenizer)
    rows = task.rows(examples, encoded)
    objective = task.objective(pad_id=made.pad_id)
    plain = objective.prepare(rows, draw=0)
    runtime = TorchHead(made.model, segments=tokenizer.segments)
    wanted = predict_logits(task, encoded, runtime, pad_id=made.pad_id)
    loss = objective.loss(made.model, plain).total(objective.counts(plain))

    kept = TokenVectors(made.model, pad_id=made.pad_id, folder=tmp_path)
    states = StateObjective(objective)
    batch = states.prepare(kept.rows(rows, encoded), draw=0).to(torch.device("cpu"))
    with kept.stand_in():
        for one, other in zip(kept.logits(encoded.windows), wanted, strict=True):
            # float16 keeps eleven bits.
            assert np.allclose(one, other, atol=5e-3)
        found = states.loss(made.model, batch).total(states.counts(batch))
        assert found.item() == pytest.approx(loss.item(), rel=5e-3)
        assert all("encoder" not in name for name, _ in made.model.named_parameters())
    again = predict_logits(task, encoded, runtime, pad_id=made.pad_id)
    assert all(np.array_equal(one, other) for one, other in zip(again, wanted, strict=True))


def test_the_encoder_runs_once_for_all_epochs_seeds_and_later_runs(
    tiny_bert, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    computed = []
    compute = TokenVectors._computed
    monkeypatch.setattr(TokenVectors, "_computed", lambda s, w: computed.append(len(w)) or compute(s, w))
    parts = Data(NAMES * 8, NAMES, NAMES, {}, [])
    result = finetune(parts, tmp_path / "a", settings(tiny_bert, "tagging", seeds=2))
    assert result.status == "finished" and len(result.runs) == 2
    assert len(computed) == 2, "training and dev; the test windows are those of dev"
    finetune(parts, tmp_path / "b", settings(tiny_bert, "tagging"))
    assert len(computed) == 2
    head = 33 * 4  # width 32 and a bias, for each of four tags
    assert result.parameters["trained parameters"] == head
    before = load_for(tiny_bert, learn_task("tagging", NAMES), seed=0).model.base_model.state_dict()
    kept = load_for(tmp_path / "a", learn_task("tagging", NAMES), seed=0).model.base_model.state_dict()
    assert all(torch.equal(before[name], kept[name]) for name in kept)
    scores = Predictor.load(tmp_path / "a", runtime="torch")
    again = scores.task.score(NAMES, scores.predict(NAMES))
    assert again == pytest.approx(result.reports[1].metrics)


def test_questions_learn_on_kept_vectors(tiny_bert, tmp_path):
    result = finetune(Data(ASKED * 4, ASKED, [], {}, []), tmp_path, settings(tiny_bert, "questions"))
    assert result.status == "finished"
    assert Predictor.load(tmp_path, runtime="torch").answer("who ?", "ann lives").spans


def test_a_full_disk_costs_time_and_nothing_else(tiny_bert, tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(TokenVectors, "room", lambda *_: False)
    said = []
    result = finetune(
        Data(NAMES * 4, NAMES, [], {}, []), tmp_path, settings(tiny_bert, "tagging"), say=said.append
    )
    assert result.status == "finished" and any("each epoch computes them anew" in line for line in said)
    assert result.parameters["trained parameters"] == 33 * 4


def test_an_interrupted_computation_leaves_no_file(tiny_bert, tmp_path, monkeypatch: pytest.MonkeyPatch):
    task = learn_task("tagging", NAMES, length=32, overlap=8)
    made = load_for(tiny_bert, task, seed=0)
    windows = task.encode(NAMES, made.windows()).windows
    monkeypatch.setattr(token_vectors, "_BATCH_TOKENS", 32)

    def stop(done: int, _: int) -> None:
        if done > 1:
            raise KeyboardInterrupt

    kept = TokenVectors(made.model, pad_id=0, folder=tmp_path / "states", progress=stop)
    with pytest.raises(KeyboardInterrupt):
        kept.states(windows)
    assert list((tmp_path / "states").iterdir()) == []
    assert (
        TokenVectors(made.model, pad_id=0, folder=tmp_path / "states").states(windows)[0].dtype == np.float16
    )


@pytest.mark.parametrize(("kind", "frozen"), [("tagging", "probe"), ("classification", "tokens")])
def test_heads_that_do_not_fit(tiny_bert, kind, frozen):
    with pytest.raises(UsageError, match=f"for {kind}, found {frozen}"):
        settings(tiny_bert, kind, frozen=frozen)
    with pytest.raises(UsageError, match="LoRA trains the encoder"):
        settings(tiny_bert, "tagging", lora=4)
