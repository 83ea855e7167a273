"""Mistyped words against brute force, and the words that must never be touched."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.index.catalogue import Catalogue
from likewise.index.view import open_view
from likewise.retrieval.spelling import correct, distance, nearest, notice

_SHORT = st.text("abc", max_size=7)


@given(_SHORT, _SHORT)
def test_distance_is_the_recursive_definition(a: str, b: str) -> None:
    @cache
    def d(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        best = min(d(i - 1, j) + 1, d(i, j - 1) + 1, d(i - 1, j - 1) + (a[i - 1] != b[j - 1]))
        if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
            best = min(best, d(i - 2, j - 2) + 1)
        return best

    for limit in (1, 2, 7):
        assert distance(a, b, limit) == min(d(len(a), len(b)), limit + 1)


@pytest.mark.parametrize(
    ("typed", "vocabulary", "found"),
    [
        ("signnig", {"sign": 3}, ("signing", "sign")),
        ("rotatoin", {"rotat": 3}, ("rotation", "rotat")),
        ("happines", {"happi": 1}, ("happies", "happi")),  # the passage will say which
        ("runing", {"run": 1}, ("running", "run")),
        ("documentaiton", {"document": 9, "documentari": 1}, ("documentation", "document")),
        ("keyz", {"key": 5}, ("key", "key")),
        ("certifcate", {"certif": 2}, ("certificate", "certif")),
        ("retreival", {"retriev": 2}, ("retrieval", "retriev")),
        ("tset", {"test": 5, "text": 1}, ("test", "test")),
        ("ignature", {"signatur": 5}, None),  # another first letter
        ("bakcup", {"backup": 1, "bakcop": 9}, ("bakcop", "bakcop")),  # both at distance 1: the frequent one
        ("abcdefgh", {"abcdefxx": 9, "abcdefgx": 1}, ("abcdefgx", "abcdefgx")),  # the nearer one
    ],
)
def test_nearest(typed: str, vocabulary: dict[str, int], found: tuple[str, str] | None) -> None:
    assert nearest(typed, vocabulary) == found


def test_a_pasted_word_costs_no_more_than_its_length() -> None:
    assert nearest("x" * 200_000, {"xylem": 1}) is None


@pytest.fixture
def index(empty_index, make_document):  # type: ignore[no-untyped-def]
    texts = [
        "Signing keys are rotated yearly. The certificate authority signs them.",
        "Rotation of keys, réservation, and the parser parseJson for WHO and E1042.",
        "簽署金鑰每年輪替一次",
    ]
    with Catalogue.open(empty_index, mode="write") as catalogue:
        catalogue.apply([make_document("a", texts, language="en")])
    return empty_index


@pytest.mark.parametrize(
    ("text", "corrected", "notices"),
    [
        ("signnig keys", "signing keys", ["nothing contains 'signnig'; searched for 'signing'"]),
        ("Signnig", "signing", ["nothing contains 'Signnig'; searched for 'signing'"]),
        ("certifcate autority", "certificate authority", [
            "nothing contains 'certifcate'; searched for 'certificate'",
            "nothing contains 'autority'; searched for 'authority'"]),
        ("how to roatte it, roatte?", "how to rotated it, rotated?",
         ["nothing contains 'roatte'; searched for 'rotated'"]),
        ("用signnig金鑰", "用signnig金鑰", []),  # inside a word of another script: left alone
        ("reservatoin", "réservation", ["nothing contains 'reservatoin'; searched for 'réservation'"]),
    ],
)  # fmt: skip
def test_corrections(index, text, corrected, notices) -> None:  # type: ignore[no-untyped-def]
    with open_view(index) as view:
        found, corrections = correct(view, text)
        assert (found, [notice(each) for each in corrections]) == (corrected, notices)


@pytest.mark.parametrize(
    "text",
    ["signing keys", "parseJsno", "E1043", "WHOO", "sign_ing", "signnig-key", "signnig.md", "簽屬金鑰",
     "kyes2", "http://signnig", "xylophone zebra", "teh", "signnig's", "@signnig", "-5", "", "rotation"],
)  # fmt: skip
def test_what_is_never_corrected(index, text) -> None:  # type: ignore[no-untyped-def]
    with open_view(index) as view:
        assert correct(view, text) == (text, [])


def test_words_of_phrases_are_spared(index) -> None:  # type: ignore[no-untyped-def]
    with open_view(index) as view:
        assert correct(view, "signnig keys", ["signnig keys"]) == ("signnig keys", [])
        assert correct(view, "signnig roatte", ["signnig"])[0] == "signnig rotated"
