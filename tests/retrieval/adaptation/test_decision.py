"""When an index changes its encoder: each condition alone is enough to leave it as it is."""

from __future__ import annotations

import pytest

from likewise.retrieval.adaptation.decision import Decision, decide
from likewise.retrieval.adaptation.trial import DENSE, FEEDBACK, HYBRID, METRIC
from likewise.retrieval.evaluation.evaluate import RunResult

QUESTIONS = 100


def run(values: list[float]) -> RunResult:
    """A value for each question, the last ten of them sentences."""
    kinds = ["title"] * (QUESTIONS - 10) + ["sentence"] * 10
    named = {
        f"{kind}-{number}": value for number, (kind, value) in enumerate(zip(kinds, values, strict=True))
    }
    return RunResult("", {}, {METRIC: named})


def level(value: float, *, noise: float = 0.0) -> RunResult:
    return run([value + noise * (1 if number % 2 else -1) for number in range(QUESTIONS)])


def decided(
    *, dense: float = 0.5, feedback: float = 0.52, hybrid: float = 0.6, new: float = 0.6, fused: float = 0.61,
    noise: float = 0.05,
) -> Decision:  # fmt: skip
    base = {DENSE: level(dense), FEEDBACK: level(feedback), HYBRID: level(hybrid)}
    return decide(base, {DENSE: level(new, noise=noise), HYBRID: level(fused)})


def test_a_clear_gain_is_adopted() -> None:
    found = decided()
    assert found.adopt and found.questions == QUESTIONS
    assert found.gain.difference.mean == pytest.approx(0.1) and found.gain.difference.low > 0.08
    assert found.over_feedback.difference.mean == pytest.approx(0.08)
    assert found.free.difference.mean == pytest.approx(0.02)
    assert found.hybrid.difference.mean == pytest.approx(0.01)
    assert (found.before.mean, found.after.mean) == (pytest.approx(0.5), pytest.approx(0.6))
    assert found.reason.startswith("dense search gains +.100 [") and "+.080 over feedback" in found.reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"new": 0.505, "feedback": 0.4, "noise": 0.3}, "the interval is not above zero"),
        ({"new": 0.4, "feedback": 0.3}, "the interval is not above zero"),
        ({"new": 0.5, "feedback": 0.3, "noise": 0.0}, "the interval is not above zero"),
        ({"new": 0.508, "feedback": 0.4, "noise": 0.0}, "an interval that begins below .010"),
        ({"new": 0.52, "feedback": 0.4, "noise": 0.1}, "an interval that begins below .010"),
        ({"feedback": 0.6, "noise": 0.0}, "needs no training, gains +.100"),
        ({"feedback": 0.7}, "needs no training, gains +.200"),
        ({"fused": 0.59}, "hybrid search, the default, loses: -.010"),
    ],
)
def test_everything_else_is_left_alone(changes: dict[str, float], words: str) -> None:
    found = decided(**changes)
    assert not found.adopt and words in found.reason


def test_a_kind_of_question_that_loses_is_a_reason() -> None:
    base = {DENSE: level(0.5), FEEDBACK: level(0.5), HYBRID: level(0.6)}
    worse = run([0.7] * (QUESTIONS - 10) + [0.4] * 10)
    found = decide(base, {DENSE: worse, HYBRID: level(0.6)})
    assert not found.adopt and "on questions made from a sentence it loses: -.100" in found.reason
    assert {kind: round(gained.mean, 3) for kind, gained in found.kinds.items()} == {
        "title": 0.2,
        "sentence": -0.1,
    }


def test_a_loss_of_hybrid_search_within_chance_is_tolerated() -> None:
    assert decided(fused=0.596).adopt


def test_what_a_program_gets() -> None:
    value = decided().to_json()
    assert (value["adopt"], value["metric"], value["questions"]) == (True, "nDCG@10", QUESTIONS)
    assert list(value["gain"]) == ["mean", "low", "high"]  # type: ignore[arg-type]
