"""Hits as text: a list for a person at a terminal, one short line for each hit in a pipe.

A line in a pipe is what users of grep expect: it begins with `path:line`, and what is shown of the passage
stands in that line of the file. Used by every command that prints hits. Must not search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.cli.output import Format, note, screen, write, write_json, write_jsonl
from likewise.cli.terminal import Screen, clip, one_line, path_text, printable, wrap

if TYPE_CHECKING:
    from likewise.retrieval.hits import Hit, HitScores, SearchResult
    from likewise.retrieval.snippets import Snippet

# Lines of a passage that a list of hits shows at a terminal; --full shows all.
_EXCERPT = 3
# Cells that a line in a pipe shows of a passage without a query: as many as a snippet has.
_WIDTH = 280


def print_result(result: SearchResult, format: Format, *, full: bool, explain: bool) -> None:
    """Print the hits to standard output, and the notices of a text result to standard error."""
    if format is Format.JSON:
        write_json(result.to_json())
        return
    if format is Format.JSONL:
        write_jsonl({"version": 1, **result.hit_json(hit)} for hit in result)
    else:
        place = screen()
        for hit in result:
            if place.is_terminal or full or explain:
                snippet = None if full else result.snippet(hit)
                _print_block(hit, place, snippet, full=full, explain=explain)
            else:
                write(_line(hit, result.snippet(hit)))
    for notice in result.notices:
        note(notice)
    if not result and not result.notices:
        note("no passage answers the query")


def location(hit: Hit, lines: tuple[int, int] | None = None) -> str:
    """Where a hit, or some lines of it, stand, in the form that editors and terminals make clickable.

    A page is named beside the lines, because in a PDF nobody counts lines.
    """
    first, last = lines or hit.lines
    span = f"{first}" if first == last else f"{first}-{last}"
    page = f" (page {hit.page})" if hit.page is not None else ""
    return f"{path_text(hit.path)}:{span}{page}"


def _line(hit: Hit, snippet: Snippet | None) -> str:
    """Place, score, heading and the best sentence, or where there is no query how the passage begins."""
    place, shown = hit.lines[0], clip(one_line(hit.text), _WIDTH)
    if snippet is not None:
        from likewise.index.breaks import count_newlines

        place, shown = place + count_newlines(hit.text, 0, snippet.start), one_line(snippet.text)
    fields = (location(hit, (place, place)), f"{hit.score:.4f}", one_line(hit.heading or hit.title), shown)
    return "\t".join(fields)


def _print_block(hit: Hit, place: Screen, snippet: Snippet | None, *, full: bool, explain: bool) -> None:
    indent = "    "
    heading = one_line(hit.heading or hit.title)
    where = place.style(location(hit), bold=True, color="cyan")
    write(f"{hit.rank:>2}  {where}  {place.style(_scores(hit), dim=True)}")
    width = place.width - len(indent)
    if heading:
        write(indent + place.style(clip(heading, width), dim=True))
    if explain:
        write(indent + place.style(explanation(hit.scores), color="yellow"))
    if full:
        lines = wrap(printable(hit.text), width) if place.is_terminal else printable(hit.text).split("\n")
    elif snippet is not None:
        lines = _marked_lines(snippet, place, width)
    else:
        lines = wrap(one_line(hit.text), width)
        if len(lines) > _EXCERPT:
            lines = [*lines[: _EXCERPT - 1], clip(lines[_EXCERPT - 1] + " …", width)]
    for line in lines:
        write((indent + line).rstrip())
    write("")


def _marked_lines(snippet: Snippet, place: Screen, width: int) -> list[str]:
    """The snippet folded into lines, with its marks in bold where the screen may have them."""
    text, marked = "", list[bool]()
    for piece, is_marked in snippet.parts():
        shown = printable(piece)
        text += shown
        marked += [is_marked] * len(shown)
    lines, at = [], 0
    for line in wrap(text, width):
        styled, run, run_marked = "", "", False
        for character in line:
            while text[at] != character:
                at += 1  # folding drops spaces
            if marked[at] != run_marked:
                styled, run, run_marked = styled + _styled(run, run_marked, place), "", marked[at]
            run += character
            at += 1
        lines.append(styled + _styled(run, run_marked, place))
    return lines


def _styled(text: str, marked: bool, place: Screen) -> str:
    return place.style(text, bold=True, color="yellow") if marked and text else text


def _scores(hit: Hit) -> str:
    """What a person can make something of: the fused score has no scale of its own."""
    scores = hit.scores
    parts = [] if hit.relevance is None else [f"relevance {hit.relevance:.2f}"]
    if scores.rerank is not None:
        parts.append(f"reranked {scores.rerank:.3f}")
    if scores.dense is not None:
        parts.append(f"cosine {scores.dense:.3f}")
    if scores.lexical is not None:
        parts.append(f"BM25 {scores.lexical:.2f}")
    return ", ".join(parts)


def explanation(scores: HitScores) -> str:
    """Both scores with their ranks, and how they became one.

    Example:
        >>> from likewise.retrieval.hits import HitScores
        >>> explanation(HitScores(dense=0.61, dense_rank=1))
        'cosine 0.610 (rank 1)'
    """
    parts = []
    if scores.dense is not None:
        parts.append(f"cosine {scores.dense:.3f} ({_rank(scores.dense_rank)})")
    if scores.lexical is not None:
        parts.append(f"BM25 {scores.lexical:.2f} ({_rank(scores.lexical_rank)})")
    elif scores.fused is not None:
        parts.append("BM25 (not ranked)")
    if scores.explanation:
        parts.append(scores.explanation)
    if scores.rerank is not None:
        parts.append(f"reranked {scores.rerank:.4f}")
    return " | ".join(parts)


def _rank(rank: int | None) -> str:
    return "not ranked" if rank is None else f"rank {rank}"
