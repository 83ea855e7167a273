"""A sentence with the rest of its passage, and a passage with the next one.

The first is the inverse cloze task (Lee, Chang and Toutanova 2019, 1906.00300).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random

from likewise.index.breaks import count_newlines
from likewise.retrieval.evaluation.self_questions import bare, is_sentence, one_line, sentences_of, without
from likewise.retrieval.pairs.documents import PairDocument
from likewise.retrieval.pairs.records import TextPair
from likewise.retrieval.pairs.wording import answers, is_prose, with_context


def sentence_pairs(document: PairDocument, random: Random) -> Iterator[TextPair]:
    """One sentence of each passage with what is left of it."""
    for passage in document.passages:
        named = {bare(name) for name in (document.title, *passage.headings)}
        sentences = list(sentences_of(passage.text))
        random.shuffle(sentences)
        for sentence in sentences:
            anchor, rest = one_line(sentence), without(passage.text, sentence)
            if not named.isdisjoint(map(bare, sentence.splitlines())) or not is_sentence(anchor):
                continue
            if bare(anchor) in bare(one_line(rest)) or not answers(rest):
                continue
            before = passage.text.partition(sentence)[0]
            line = passage.lines[0] + count_newlines(before, 0, len(before))
            text = with_context(document.title, passage, rest, unless=anchor)
            yield TextPair("sentence", anchor, text, document.key, passage.lines, document.key, line)
            break


def neighbour_pairs(document: PairDocument) -> Iterator[TextPair]:
    """Each passage with the next one, where both stand under the same heading."""
    for one, other in pairwise(document.passages):
        if one.headings == other.headings and all(answers(p.text) and is_prose(p.text) for p in (one, other)):
            text = with_context(document.title, other, other.text)
            yield TextPair("neighbour", one.text, text, document.key, other.lines, document.key, one.lines[0])
