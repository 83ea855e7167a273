"""Tell the main language of a text from its script and its function words.

No model and no dependency: enough to pick stop words and a stemmer and to filter by language, not enough to
identify two hundred languages. Chinese is `zh` whether it is written in Traditional or Simplified characters.
Must not guess: a text without enough evidence has the language "".
"""

from __future__ import annotations

import re
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
    words = _estimate_words(text)
    if not words:
        return ""
    ranked = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    best, estimate = ranked[0]
    # Two close languages share many function words ("de", "la", "en"): a tie says nothing.
    if len(ranked) > 1 and ranked[1][1] == estimate:
        return ""
    return best


def _estimate_words(text: str) -> dict[str, float]:
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
    hits: dict[str, int] = {}
    owners = _owners()
    for word in _WORD.findall(text.casefold().replace("’", "'")):
        for language in owners.get(word, ()):
            hits[language] = hits.get(language, 0) + 1
    for language, count in hits.items():
        estimates[language] = count / _FUNCTION_WORD_SHARE
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
