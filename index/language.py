"""Tell the main language of a text from its script and its function words.

No model and no dependency: enough to pick stop words and a stemmer and to filter by language, not enough to
identify two hundred languages. Chinese is `zh` whether it is written in Traditional or Simplified characters.
Must not guess: a text without enough evidence has the language "".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache

from likewise.index.stop_words import STOP_WORDS

# Ten thousand characters decide; a longer text is sampled at its beginning, middle and end, because licence
# headers and code often stand at one of them.
_SAMPLE = 3400

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_KANA = re.compile(r"[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9d]")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")

# Scripts that (nearly) one language uses, with the characters that make up about one word of it.
_SCRIPTS: tuple[tuple[str, re.Pattern[str], float], ...] = (
    ("ar", re.compile(r"[\u0620-\u064a]"), 5.0),
    ("el", re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]"), 5.5),
    ("he", re.compile(r"[\u05d0-\u05ea]"), 4.5),
    ("hi", re.compile(r"[\u0904-\u0939]"), 3.0),
    ("ko", re.compile(r"[\uac00-\ud7a3]"), 3.0),
    ("th", re.compile(r"[\u0e01-\u0e2e]"), 3.5),
)

# Function words are about this share of the running words of European prose, so that hits divided by it
# estimate how many words of the language a text has, which code and names around them do not.
_FUNCTION_WORD_SHARE = 0.4

# A foreign language shares a few short words with a known one and repeats them: Polish "na", "do" and "se"
# are Portuguese too. Real prose has many different function words, about as many as twice the square
# root of their occurrences (Heaps' law). Over the Universal Declaration of Human Rights in 388 languages and
# dialects this bound keeps all known languages and refuses nearly all others but their closest relatives.
_FEW_HITS = 12

# Even a page that is mostly code has this share of function words; a language that shares a word or two with
# a known one has less.
_LEAST_SHARE = 0.05


def _least_distinct(hits: int) -> float:
    """How many different function words prose with so many of them has at least."""
    return 1.75 * math.sqrt(hits) - 3 if hits >= _FEW_HITS else 1


def detect_language(text: str) -> str:
    """ISO 639-1 code of the language that most of the prose is written in, or "" when unsure.

    Recognises ar, de, el, en, es, fr, he, hi, it, ja, ko, nl, pt, ru, sv, th and zh. Each language gets an
    estimate of how many words of it the text has; the largest wins. Code, numbers and names count for none,
    so a Chinese manual full of English identifiers is still Chinese.

    Example:
        >>> detect_language("How do I rotate a signing key?")
        'en'
        >>> detect_language("如何輪替簽署金鑰？"), detect_language("署名鍵を交換するには")
        ('zh', 'ja')
        >>> detect_language("x = 3.14")
        ''
    """
    if len(text) > 3 * _SAMPLE:
        middle = len(text) // 2
        text = text[:_SAMPLE] + "\n" + text[middle : middle + _SAMPLE] + "\n" + text[-_SAMPLE:]
    estimates = {**_by_script(text), **_by_function_words(text)}
    # Two close languages share many function words ("de", "la", "en"): a tie says nothing.
    best, second = (sorted(estimates.items(), key=lambda item: -item[1]) + [("", 0.0)] * 2)[:2]
    return best[0] if best[1] > second[1] else ""


def _by_script(text: str) -> dict[str, float]:
    """Estimated words in each language that its script alone tells."""
    estimates: dict[str, float] = {}
    if not text.isascii():
        han, kana = len(_HAN.findall(text)), len(_KANA.findall(text))
        if kana and kana >= 0.1 * (han + kana):
            estimates["ja"] = han / 1.6 + kana / 3.0
        elif han:
            estimates["zh"] = han / 1.6
        for language, letters, per_word in _SCRIPTS:
            if count := len(letters.findall(text)):
                estimates[language] = count / per_word
    return estimates


def _by_function_words(text: str) -> dict[str, float]:
    """Estimated words in each language that is told by its function words.

    A language that is only similar to the text's own counts too, as "" with its estimate: it must not win,
    nor leave the victory to one that is even less like it.
    """
    hits: dict[str, Counter[str]] = {}
    owners = _owners()
    counts = Counter(_WORD.findall(text.casefold().replace("’", "'")))
    for word, count in counts.items():
        for language in owners.get(word, ()):
            hits.setdefault(language, Counter())[word] = count
    estimates: dict[str, float] = {}
    for language, words in hits.items():
        total = words.total()
        prose = len(words) >= _least_distinct(total) and total >= _LEAST_SHARE * counts.total()
        name = language if prose else ""
        estimates[name] = max(estimates.get(name, 0.0), total / _FUNCTION_WORD_SHARE)
    return estimates


@lru_cache(maxsize=1)
def _owners() -> dict[str, tuple[str, ...]]:
    """Function word -> the languages that have it, single letters and CJK pairs left out."""
    owners: dict[str, tuple[str, ...]] = {}
    for language, words in STOP_WORDS.items():
        if language in ("ja", "zh"):
            continue
        for word in words:
            if len(word) > 1 or not word.isascii():
                owners[word] = (*owners.get(word, ()), language)
    return owners
