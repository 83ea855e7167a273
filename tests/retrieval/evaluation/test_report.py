"""The page and its plots: what is drawn where, and what stands in it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from likewise.index.index import Index
from likewise.retrieval.evaluation.evaluate import Evaluation, evaluate, recall_curve
from likewise.retrieval.evaluation.excerpts import Shown, show_from
from likewise.retrieval.evaluation.judgements import Judgements
from likewise.retrieval.evaluation.plots import Bar, Line, gain_plot, recall_plot
from likewise.retrieval.evaluation.report import Setting, group_mean, html_report

EVIL = "<script>alert('x')</script> & \"quotes\""


def measured(runs: int = 2) -> Evaluation:
    judgements = Judgements({"1": EVIL, "2": "金鑰？"}, {"1": {"a": 1, EVIL: 1}, "2": {"b": 2}})
    rankings = {
        "dense": {"1": {"c": 1.0, "a": 0.5}, "2": {"b": 1.0}},
        f"lexical {EVIL}": {"1": {"a": 1.0}, "2": {"c": 2.0, "b": 1.0}},
    }
    chosen = dict(list(rankings.items())[:runs])
    return evaluate({}, judgements, metrics=["MRR@10", "recall@10"], depth=20, runs=chosen)


def test_everything_is_escaped() -> None:
    setting = Setting(
        EVIL,
        facts={EVIL: EVIL},
        notices=[EVIL],
        groups={EVIL: ["1", "2"]},
        show=lambda answer: Shown(answer, EVIL, EVIL, 'file:///a"onclick="x'),
    )
    page = html_report(measured(), setting)
    assert "<script" not in page
    assert not re.search(r'<[^>]*" onclick', page)
    assert "&lt;script&gt;" in page
    assert 'href="file:///a&quot;onclick=&quot;x"' in page


def test_the_page_says_what_was_measured() -> None:
    setting = Setting("handbook", facts={"encoder": "hash"}, notices=["two are missing"])
    page = html_report(measured(), setting)
    for text in ("<h1>handbook</h1>", "2 questions", "two are missing", "hash", "Should be found", ".750"):
        assert text in page
    assert "first right answer at rank 2" in page
    assert "default-src 'none'" in page


def test_one_run_is_compared_with_nothing() -> None:
    page = html_report(measured(runs=1), Setting("handbook"))
    assert "Question by question" not in page
    assert 'class="verdicts"' not in page.partition("</style>")[2]
    assert page.count("<svg") == 1


def test_no_failures() -> None:
    judgements = Judgements({"1": "one"}, {"1": {"a": 1}})
    perfect = evaluate({}, judgements, metrics=["mrr@1"], runs={"r": {"1": {"a": 1.0}}})
    assert "Answered worst" not in html_report(perfect, Setting("x"))


def test_the_recall_curve_is_drawn_from_corner_to_corner() -> None:
    plot = ElementTree.fromstring(recall_plot([Line("r", [0.0] * 99 + [1.0], 0)]))
    dots = plot.findall("circle")
    assert len(dots) == 7
    first, last = dots[0], dots[-1]
    assert float(first.attrib["cx"]) < float(last.attrib["cx"])
    assert float(first.attrib["cy"]) > float(last.attrib["cy"])
    assert last[0].text == "r: recall@100 1.000"


def test_gains_point_up_and_losses_down() -> None:
    bars = [Bar(-0.5, "loss"), Bar(1.0, "gain & more"), Bar(0.0, "none")]
    rects = ElementTree.fromstring(gain_plot(bars, gain_color=2, loss_color=1)).findall("rect")
    assert [(rect[0].text, rect.attrib["class"]) for rect in rects] == [
        ("gain & more", "bar c2"),
        ("loss", "bar c1"),
    ]
    gain, loss = rects
    assert float(gain.attrib["height"]) == pytest.approx(2 * float(loss.attrib["height"]))
    zero = float(gain.attrib["y"]) + float(gain.attrib["height"])
    assert float(loss.attrib["y"]) == pytest.approx(zero)


def test_many_bars_are_one_shape() -> None:
    bars = [Bar((place - 2500) / 5000, str(place)) for place in range(5001)]
    plot = gain_plot(bars, gain_color=0, loss_color=1)
    assert plot.count("<rect") == 0
    assert len(ElementTree.fromstring(plot).findall("path[@class='bar c0']")) == 1


def test_recall_by_depth_equals_the_metric() -> None:
    evaluation = measured()
    for run in evaluation.runs:
        curve = recall_curve(run.run, evaluation.qrels, 20)
        assert curve[9] == pytest.approx(run.interval("recall@10").mean)
        assert curve == sorted(curve)


def test_a_mean_of_some_questions() -> None:
    run = measured().runs[0]
    assert group_mean(run, "MRR@10", ["1"]) == 0.5


def test_answers_look_like_places(guide_index: Index) -> None:
    with guide_index.view() as view:
        show = show_from(view, base=guide_index.base)
        whole, place = show("zh/金鑰.md"), show("keys.md#line=8")
        passage = show(f"keys.md#passage={view.document_passages('keys.md')[1].id}")
        gone = show("gone.md#line=3")
    assert (whole.label, whole.title) == ("zh/金鑰.md", "簽署金鑰的輪替")
    assert whole.link == (guide_index.base / "zh" / "金鑰.md").as_uri()
    assert re.fullmatch(r"keys\.md:\d+-\d+", place.label)
    assert "duty officer" in place.text
    assert passage.label.startswith("keys.md:")
    assert (gone.label, gone.text, gone.link) == ("gone.md#line=3", "", "")
