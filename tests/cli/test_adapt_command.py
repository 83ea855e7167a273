"""`likewise adapt`: what a person and a program are told. Training itself is tested with the module."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from likewise.index.report import SyncInterrupted, SyncReport
from likewise.retrieval.adaptation import adapt as module
from likewise.retrieval.adaptation.decision import Decision, decide
from likewise.retrieval.adaptation.records import Adaptation
from likewise.retrieval.adaptation.trial import DENSE, FEEDBACK, HYBRID, METRIC
from likewise.retrieval.evaluation.evaluate import RunResult

Run = Callable[..., Result]


def verdict(*, new: float) -> Decision:
    def level(value: float) -> RunResult:
        return RunResult("", {}, {METRIC: {f"title-{number}": value for number in range(20)}})

    base = {DENSE: level(0.5), FEEDBACK: level(0.55), HYBRID: level(0.6)}
    return decide(base, {DENSE: level(new), HYBRID: level(0.62)})


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[dict[str, Any]]]:
    """Let `adapt` end in a given way; returns what it was called with."""

    def let(outcome: Any) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []

        def adapt(index: Any, settings: Any, **named: Any) -> Adaptation:
            calls.append({"index": index.folder, "settings": settings, **named})
            if isinstance(outcome, BaseException):
                raise outcome
            assert isinstance(outcome, Adaptation)
            return outcome

        monkeypatch.setattr(module, "adapt", adapt)
        return calls

    return let


PAIRS = {"title": 40, "heading": 30}


def test_adapted(run: Run, indexed: Path, ends: Callable[[Any], list[dict[str, Any]]]) -> None:
    decision = verdict(new=0.6)
    done = Adaptation(
        "adapted", decision.reason, indexed / "new", PAIRS, 50, "trained", {"base": 0.5, "trained": 0.61},
        decision, 120, 8,
    )  # type: ignore[arg-type]  # fmt: skip
    calls = ends(done)
    result = run("adapt", ".", "--minutes", "2", "--pairs", "70", "--lr", "1e-5", "--seed", "3")
    assert result.exit_code == 0, result.output
    [call] = calls
    recipe = call["settings"].recipe
    assert (recipe.minutes, recipe.steps, recipe.learning_rate, recipe.seed) == (2, None, 1e-5, 3)
    assert (call["settings"].pairs, call["settings"].seed, call["dry_run"]) == (70, 3, False)
    lines = result.stdout.splitlines()
    assert lines[0] == "learned from 70 pairs (40 title, 30 heading; 50 with a hard negative) in 120 steps"
    assert lines[1] == "to choose by, nDCG@10: base .500; trained .610"
    assert lines[2].split() == ["nDCG@10,", "20", "questions", "value", "gain"]
    assert "+.100 [.100, .100]" in lines[5] and lines[5].startswith("dense, adapted")
    assert lines[6].split() == ["-", "title", "questions", "+.100", "[.100,", ".100]"]
    assert lines[8].startswith("adapted: dense search gains +.100")
    assert lines[9].endswith("new now")


def test_left_alone(run: Run, ends: Callable[[Any], list[dict[str, Any]]]) -> None:
    decision = verdict(new=0.52)
    calls = ends(Adaptation("left alone", decision.reason, pairs=PAIRS, decision=decision, steps=9))  # type: ignore[arg-type]
    result = run("adapt", ".", "--steps", "9")
    assert result.exit_code == 0 and calls[0]["settings"].recipe.steps == 9
    assert result.stdout.splitlines()[-1].startswith("left alone: dense search gains +.020")
    assert "needs no training, gains +.050" in result.stdout


def test_a_dry_run_that_found_something(run: Run, indexed: Path, ends: Callable[[Any], Any]) -> None:
    decision = verdict(new=0.6)
    ends(Adaptation("left alone", decision.reason, indexed / "new", decision=decision))
    result = run("adapt", ".", "--dry-run")
    assert "worth it: dense search gains" in result.stdout and "--reembed uses it" in result.stderr


def test_json(run: Run, ends: Callable[[Any], Any]) -> None:
    decision = verdict(new=0.6)
    ends(Adaptation("left alone", "why", pairs=PAIRS, decision=decision))  # type: ignore[arg-type]
    value = json.loads(run("adapt", ".", "--json").stdout)
    assert list(value) == [
        *("version", "status", "reason", "encoder", "pairs", "mined", "steps", "choosing", "chosen"),
        *("decision", "reembedded"),
    ]
    assert value["pairs"] == PAIRS and value["decision"]["gain"]["mean"] == pytest.approx(0.1)
    assert json.loads(run("adapt", ".", "--jsonl").stdout) == value


def test_interruptions(run: Run, ends: Callable[[Any], Any]) -> None:
    ends(Adaptation("interrupted", "stopped in the training", steps=40))
    result = run("adapt", ".")
    assert result.exit_code == 130 and "stopped at step 40" in result.stderr and result.stdout == ""
    ends(KeyboardInterrupt())
    result = run("adapt", ".")
    assert result.exit_code == 130 and "the index is as it was" in result.stderr
    ends(SyncInterrupted(SyncReport()))
    result = run("adapt", ".")
    assert result.exit_code != 0 and "the old vectors answer" in result.stderr


def test_an_index_that_cannot_be_adapted(run: Run, tmp_path: Path) -> None:
    result = run("adapt", ".")
    assert result.exit_code == 1 and "has no weights" in result.stderr and "--reembed" in result.stderr
    result = run("adapt", str(tmp_path))
    assert result.exit_code == 1 and f"likewise index {tmp_path}" in result.stderr.replace("\n", "")
    assert "no folder" in run("adapt", str(tmp_path / "missing")).stderr
    assert run("adapt", ".", "--questions", "1").exit_code == 2
