"""Adapting a tiny encoder from end to end: the index changes if and only if the verdict is for it."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from likewise.embedder import load_encoder
from likewise.embedder.events import Progress
from likewise.embedder.run_lock import only_run
from likewise.errors import DataError, EncoderError, TrainingError, UsageError
from likewise.index.chunker import context_lines
from likewise.index.index import Index
from likewise.index.report import SyncInterrupted
from likewise.index.settings import ChunkSettings
from likewise.retrieval.adaptation import adapt as module
from likewise.retrieval.adaptation.adapt import RUN_FOLDER, WORK_FOLDER, adapt
from likewise.retrieval.adaptation.candidates import Recipe, blend_models
from likewise.retrieval.adaptation.decision import decide
from likewise.retrieval.adaptation.records import AdaptSettings

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SETTINGS = AdaptSettings(
    recipe=Recipe(
        minutes=None, steps=30, learning_rate=3e-3, evaluate_every=10, precision="float32", device="cpu"
    ),
    questions=60,
    pairs=60,
)


@pytest.fixture(scope="module")
def indexed(
    tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path, write_documents: Callable[..., None]
) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    write_documents(folder)
    with Index.open(folder / ".likewise", encoder=str(tiny_encoder)) as index:
        index.sync([folder])
    return folder


@pytest.fixture
def folder(indexed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(indexed, tmp_path / "documents"))


@pytest.fixture
def index(folder: Path) -> Iterator[Index]:
    with Index.open(folder / ".likewise") as opened:
        yield opened


def contents(index: Index) -> tuple[str, str, list[float], set[str]]:
    with index.view() as view:
        vectors = view.vectors(view.everything()).sum(axis=0).round(4).tolist()
    return index.fingerprint, index.encoder_name, vectors, {path.name for path in index.folder.iterdir()}


def agree(monkeypatch: pytest.MonkeyPatch, *, adopt: bool) -> None:
    """Let the verdict be known beforehand; how it is found is tested with numbers in `test_decision`."""

    def decided(*args: Any, **named: Any) -> Any:
        return replace(decide(*args, **named), adopt=adopt)

    monkeypatch.setattr(module, "decide", decided)


def test_a_good_verdict_changes_the_index(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agree(monkeypatch, adopt=True)
    before = contents(index)
    phases: list[str] = []
    done = adapt(index, SETTINGS, progress=lambda phase, at, total: phases.append(phase))
    assert done.status == "adapted" and done.encoder is not None and done.decision is not None
    assert done.encoder.parent == index.folder and done.encoder.name.startswith("encoder-")
    assert list(dict.fromkeys(phases))[:2] == ["looking for pairs", "mining"]
    assert "embedding the index" in phases
    # The index answers with the new vectors, and they are those of the saved encoder.
    encoder = load_encoder(str(done.encoder))
    assert index.fingerprint == encoder.fingerprint != before[0]
    with index.view() as view:
        assert done.reembedded == view.passage_count
        [key] = [row.key for row in view.documents()][:1]
        [first, *_] = view.document_passages(key)
        vector = view.vectors([first.id])[0]
        lines = context_lines(first.title, encoder, ChunkSettings())
        expected = encoder.encode_passages([lines.compose(first.passage.headings, first.passage.text)])[0]
    np.testing.assert_allclose(vector, expected, atol=1e-5)
    # What it was measured by travels with it; what was made on the way is gone.
    told = json.loads((done.encoder / "adaptation.json").read_text("utf-8"))
    assert told["chosen"] == done.chosen and told["decision"]["questions"] == done.decision.questions > 20
    assert not (index.folder / WORK_FOLDER).exists() and not (done.encoder / "training").exists()
    # A second adaptation starts from the first, which goes when the second has taken its place. Whether the
    # same training helps once more is chance, so whatever it makes is taken for better.
    falling = itertools.count(0, -1)  # the candidate is asked for before the best so far
    monkeypatch.setattr(module, "mean", lambda _: float(next(falling)))
    again = adapt(index, SETTINGS)
    assert again.encoder is not None and again.encoder != done.encoder and not done.encoder.exists()
    # The encoder moves with the folder.
    index.close()
    index.base.rename(tmp_path / "moved")
    with Index.open(tmp_path / "moved" / ".likewise") as moved:
        assert moved.encoder.fingerprint == moved.fingerprint
        assert Path(moved.encoder_name).parent == moved.folder


def test_a_bad_verdict_changes_nothing(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    agree(monkeypatch, adopt=False)
    before = contents(index)
    done = adapt(index, SETTINGS)
    assert done.status == "left alone" and done.encoder is None and done.reembedded == 0
    assert done.decision is not None and done.reason == done.decision.reason
    assert contents(index) == before


def test_the_real_verdict_is_followed(index: Index) -> None:
    before = contents(index)
    done = adapt(index, SETTINGS)
    assert done.decision is not None
    assert (done.status == "adapted") == done.decision.adopt
    assert (contents(index) == before) == (not done.decision.adopt)
    # Random weights learn something, so there was a candidate, and both blends were asked.
    assert list(done.choosing) == ["the encoder of the index", "trained, 50% of the base", "trained"]
    assert done.choosing[done.chosen] > done.choosing["the encoder of the index"]
    assert set(done.pairs) == {"title", "heading", "sentence"} and sum(done.pairs.values()) > done.mined >= 0


def test_a_dry_run_keeps_the_encoder_and_nothing_else(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agree(monkeypatch, adopt=True)
    before = contents(index)
    done = adapt(index, SETTINGS, output=tmp_path / "mine", dry_run=True)
    assert (done.status, done.encoder) == ("left alone", tmp_path / "mine")
    assert contents(index) == before
    assert load_encoder(str(tmp_path / "mine")).fingerprint != before[0]
    with pytest.raises(UsageError, match="expected a new folder"):
        adapt(index, SETTINGS, output=tmp_path / "mine")


def test_no_candidate(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(index)
    nothing = replace(SETTINGS, recipe=replace(SETTINGS.recipe, steps=1, learning_rate=1e-12))
    done = adapt(index, nothing)
    assert done.status == "left alone" and done.decision is None and contents(index) == before
    assert "training brought nothing" in done.reason or "no candidate" in done.reason


def test_a_second_run_is_kept_out(index: Index) -> None:
    with (
        only_run(index.folder / RUN_FOLDER),
        pytest.raises(TrainingError, match="another process is training"),
    ):
        adapt(index)
    assert not (index.folder / RUN_FOLDER).exists()


def test_ctrl_c_in_the_training(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    agree(monkeypatch, adopt=False)
    before = contents(index)
    steps: list[int] = []

    def stop(event: object) -> None:
        if isinstance(event, Progress):
            steps.append(event.step)
            if event.step >= 10 and len(steps) == 1:
                signal.raise_signal(signal.SIGINT)

    quick = replace(SETTINGS, recipe=replace(SETTINGS.recipe, evaluate_every=30))
    done = adapt(index, quick, listeners=[stop])
    assert done.status == "interrupted" and 0 < done.steps < 30
    assert contents(index)[:3] == before[:3] and (index.folder / WORK_FOLDER).is_dir()
    again = adapt(index, quick)
    assert again.steps == 30 and contents(index) == before


def test_ctrl_c_while_the_index_is_embedded(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    agree(monkeypatch, adopt=True)
    before = contents(index)

    def stop(phase: str, done: int, total: int | None) -> None:
        if phase == "embedding the index" and done:
            raise KeyboardInterrupt

    with pytest.raises(SyncInterrupted):
        adapt(index, SETTINGS, progress=stop)
    with Index.open(index.folder) as opened:
        assert contents(opened)[:3] == before[:3]
    with Index.open(index.folder) as opened:
        done = adapt(opened, SETTINGS)
        assert done.status == "adapted" and opened.fingerprint != before[0]


def test_blending_is_the_mean_of_the_weights(tiny_encoder: Path, index: Index, tmp_path: Path) -> None:
    from likewise.embedder.siamese.loading import load_sentence_model

    torch = pytest.importorskip("torch")
    moved = load_sentence_model(tiny_encoder)
    with torch.no_grad():
        for weight in moved.model.parameters():
            weight.add_(1.0)
    from likewise.embedder.siamese.saving import save_sentence_model

    save_sentence_model(moved.model, moved.spec, tmp_path / "moved")
    blend_models(str(tiny_encoder), tmp_path / "moved", 0.25, tmp_path / "blend")
    base, blend = load_sentence_model(tiny_encoder), load_sentence_model(tmp_path / "blend")
    for one, other in zip(base.model.parameters(), blend.model.parameters(), strict=True):
        torch.testing.assert_close(other, one + 0.75)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ({}, "expected at least 6 documents with text"),
        (
            {"one.md": "# Signing keys\n\nRotate them once a year, and tell the whole security team."},
            "found 1",
        ),
        ({f"{n}.txt": f"word{n}" for n in range(8)}, "no pair can be made from 8 documents"),
    ],
)
def test_too_little_to_learn_from(
    tmp_path: Path, tiny_encoder: Path, documents: dict[str, str], message: str
) -> None:
    (tmp_path / "folder").mkdir()
    for name, text in documents.items():
        (tmp_path / "folder" / name).write_text(text, "utf-8")
    with Index.open(tmp_path / "folder" / ".likewise", encoder=str(tiny_encoder)) as index:
        index.sync([tmp_path / "folder"])
        with pytest.raises(DataError, match=message):
            adapt(index, SETTINGS)


def test_too_few_pairs(tmp_path: Path, tiny_encoder: Path) -> None:
    animals = ["fox", "owl", "bat", "elk", "hen", "cow", "pig", "rat"]
    trees = ["oak", "elm", "ash", "fir", "yew", "bay", "fig", "may"]
    for animal, tree in zip(animals, trees, strict=True):
        text = f"# The {animal} under the {tree}\n\nThe {animal} sleeps beside an old {tree} tree all summer."
        text += f" It eats fresh leaves of {tree} every evening.\n"
        (tmp_path / f"{animal}.md").write_text(text, "utf-8")
    with Index.open(tmp_path / ".likewise", encoder=str(tiny_encoder)) as index:
        index.sync([tmp_path])
        with pytest.raises(DataError, match="expected at least 32 pairs to learn from"):
            adapt(index, SETTINGS)


def test_an_encoder_without_weights(tmp_path: Path, write_documents: Callable[..., None]) -> None:
    write_documents(tmp_path / "folder", 8)
    with Index.open(tmp_path / "folder" / ".likewise", encoder="hash") as index:
        index.sync([tmp_path / "folder"])
        with pytest.raises(EncoderError, match="has no weights"):
            adapt(index, SETTINGS)
