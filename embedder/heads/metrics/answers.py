"""Exact match and F1 of answer texts: English as SQuAD's official script, Chinese as CMRC 2018's.

Both take the best over the gold answers. English compares words without case, punctuation and articles
(Rajpurkar et al. 2016). Chinese compares the longest common run of characters, punctuation left out (Cui et
al. 2019); Latin words count as one character each. The official script cuts them with NLTK's tokenizer, this
one at spaces and punctuation, which differs only in words such as "don't".
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Literal

Language = Literal["en", "zh"]

_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_HAN = re.compile(r"[\u4e00-\u9fa5]")
_ANY_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LATIN = re.compile(r"\w+|[^\w\s]")
# As in the official script, where "……" is of two characters and so never equals one.
_CHINESE_PUNCTUATION = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")


def exact_match(prediction: str, golds: Sequence[str], *, language: Language = "en") -> float:
    """1 if the prediction equals a gold answer after normalisation, else 0.

    Args:
        prediction: The answer; "" says that there is none.
        golds: All that count as right; none or "" means that there is no answer.
        language: Which rules.

    Example:
        >>> exact_match("The Denver Broncos", ["Denver Broncos!"])
        1.0
        >>> exact_match("金鑰。", ["金鑰"], language="zh")
        1.0
    """
    normal = normalize_english if language == "en" else normalize_chinese
    return max(float(normal(prediction) == normal(gold)) for gold in _known(golds))


def f1(prediction: str, golds: Sequence[str], *, language: Language = "en") -> float:
    """Overlap of the prediction with the gold answer that it fits best, in [0, 1].

    Args:
        prediction: The answer; "" says that there is none.
        golds: All that count as right; none or "" means that there is no answer.
        language: Which rules.

    Example:
        >>> f1("the red fox", ["a red cat"]), round(f1("北京市", ["北京"], language="zh"), 4)
        (0.5, 0.8)
    """
    score = _english_f1 if language == "en" else _chinese_f1
    return max(score(prediction, gold) for gold in _known(golds))


def normalize_english(text: str) -> str:
    """Lower case, no punctuation, no articles, single spaces.

    Example:
        >>> normalize_english("The  U.S.A., a land")
        'usa land'
    """
    text = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


_PUNCTUATION = frozenset(string.punctuation)


def normalize_chinese(text: str) -> str:
    """Lower case, no punctuation.

    Example:
        >>> normalize_chinese("《Linux 核心》")
        'linux 核心'
    """
    return "".join(c for c in text.lower().strip() if c not in _CHINESE_PUNCTUATION)


def language_of(text: str) -> Language:
    """Which rules fit a text: Chinese where Han characters outnumber half of the Latin letters.

    Example:
        >>> language_of("簽署金鑰 rotate"), language_of("rotate keys 金鑰")
        ('zh', 'en')
    """
    han = len(_ANY_HAN.findall(text))
    letters = sum(c.isalpha() for c in text) - han
    return "zh" if han and 2 * han > letters else "en"


def _known(golds: Sequence[str]) -> Sequence[str]:
    return golds or ("",)


def _english_f1(prediction: str, gold: str) -> float:
    found, wanted = normalize_english(prediction).split(), normalize_english(gold).split()
    if not found or not wanted:
        return float(found == wanted)
    same = sum((Counter(found) & Counter(wanted)).values())
    return _harmonic(same, len(found), len(wanted))


def _chinese_f1(prediction: str, gold: str) -> float:
    found, wanted = _chinese_units(prediction), _chinese_units(gold)
    if not found or not wanted:
        return float(found == wanted)
    return _harmonic(_longest_common_run(found, wanted), len(found), len(wanted))


def _harmonic(same: int, found: int, wanted: int) -> float:
    if not same:
        return 0.0
    precision, recall = same / found, same / wanted
    return 2 * precision * recall / (precision + recall)


def _chinese_units(text: str) -> list[str]:
    units: list[str] = []
    run = ""
    for character in text.lower().strip():
        if character in _CHINESE_PUNCTUATION:
            continue
        if _HAN.match(character):
            units += [*_LATIN.findall(run), character]
            run = ""
        else:
            run += character
    return [*units, *_LATIN.findall(run)]


def _longest_common_run(left: list[str], right: list[str]) -> int:
    longest, row = 0, [0] * (len(right) + 1)
    for unit in left:
        row = [0, *(row[at] + 1 if unit == other else 0 for at, other in enumerate(right))]
        longest = max(longest, *row)
    return longest
