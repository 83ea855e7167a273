"""Plots as SVG text: gain per question, and recall by depth. Colours come from the style sheet of the page.

Everything is drawn in a space 480 units wide, so that labels stay readable on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 480, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 10, 10, 28
_NAMED_BARS = 400  # more bars than pixels need no names of their own
_DEPTHS = (1, 2, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Line:
    """A named curve; `color` is the number of its colour in the style sheet."""

    name: str
    values: Sequence[float]
    color: int


@dataclass(frozen=True)
class Bar:
    """The gain of one question, in [-1, 1], and what a pointer on it shows."""

    value: float
    label: str


def recall_plot(lines: Sequence[Line]) -> str:
    """Mean recall (vertical, 0 to 1) by how many results one looks at (horizontal, logarithmic).

    Args:
        lines: Recall at 1, 2, ... of each configuration; all of the same length.
    """
    depth = max(len(line.values) for line in lines)
    parts = [_open("Mean recall by the number of results looked at")]
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = _y(share, 0, 1)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>')
        parts.append(_text(_LEFT - 5, y + 4, f"{share:g}".replace("0.", "."), "end"))
    for rank in (rank for rank in _DEPTHS if rank <= depth):
        x = _x_log(rank, depth)
        parts.append(f'<path class="tick" d="M{x:.1f} {HEIGHT - _BOTTOM}v4"/>')
        parts.append(_text(x, HEIGHT - 7, str(rank), "middle"))
    for line in lines:
        points = [(_x_log(rank, depth), _y(v, 0, 1)) for rank, v in enumerate(line.values, start=1)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(f'<path class="line c{line.color}" d="M{path}"/>')
        parts += [
            f'<circle class="dot c{line.color}" cx="{points[rank - 1][0]:.1f}" cy="{points[rank - 1][1]:.1f}"'
            f' r="3"><title>{escape(line.name)}: recall@{rank} {line.values[rank - 1]:.3f}</title></circle>'
            for rank in _DEPTHS
            if rank <= len(line.values)
        ]
    return "".join([*parts, "</svg>"])


def gain_plot(bars: Sequence[Bar], *, gain_color: int, loss_color: int) -> str:
    """One bar for each question, the largest gain first; gains point up, losses down.

    Args:
        bars: In any order.
        gain_color: Number of the colour of gains.
        loss_color: Number of the colour of losses.
    """
    ordered = sorted(bars, key=lambda bar: -bar.value)
    top = max((abs(bar.value) for bar in ordered), default=0.0)
    limit = next(step for step in (0.1, 0.25, 0.5, 0.75, 1.0) if top <= step or step == 1.0)
    parts = [_open("Difference for each question, the largest gain first")]
    for value in (limit, limit / 2, 0, -limit / 2, -limit):
        y = _y(value, -limit, limit)
        parts.append(f'<path class="{"grid" if value else "axis"}" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>')
        if value in (limit, 0, -limit):
            parts.append(_text(_LEFT - 5, y + 4, _signed(value), "end"))
    step = (WIDTH - _LEFT - _RIGHT) / max(1, len(ordered))
    zero = _y(0, -limit, limit)
    areas: dict[int, str] = {}
    for place, bar in enumerate(ordered):
        if not bar.value:
            continue
        x, y = _LEFT + place * step, _y(bar.value, -limit, limit)
        color = gain_color if bar.value > 0 else loss_color
        width = max(step - (1 if step > 3 else 0), 0.5)
        if len(ordered) > _NAMED_BARS:
            areas[color] = areas.get(color, "") + f"M{x:.2f} {zero:.1f}V{y:.1f}h{width:.2f}V{zero:.1f}z"
        else:
            parts.append(
                f'<rect class="bar c{color}" x="{x:.2f}" y="{min(y, zero):.1f}" width="{width:.2f}"'
                f' height="{abs(y - zero):.1f}"><title>{escape(bar.label)}</title></rect>'
            )
    parts += [f'<path class="bar c{color}" d="{path}"/>' for color, path in areas.items()]
    parts.append(_text((WIDTH + _LEFT - _RIGHT) / 2, HEIGHT - 7, f"{len(ordered)} questions", "middle"))
    return "".join([*parts, "</svg>"])


def _open(label: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _y(value: float, low: float, high: float) -> float:
    return HEIGHT - _BOTTOM - (value - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)


def _x_log(rank: int, depth: int) -> float:
    share = math.log(rank) / math.log(depth) if depth > 1 else 0.5
    return _LEFT + 6 + share * (WIDTH - _LEFT - _RIGHT - 12)


def _signed(value: float) -> str:
    return f"{value:+.3g}".replace("0.", ".") if value else "0"
