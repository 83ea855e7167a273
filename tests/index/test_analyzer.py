"""The analyser: what becomes a term, and that queries meet documents."""

from __future__ import annotations

import gzip
import json
import math
import threading
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.index.analyzer import TERM_PUNCTUATION, analyze, analyze_query, analyze_spans
from likewise.index.compounds import MAX_TERM
from likewise.index.language import detect_language


def meets(query: str, text: str, language: str = "") -> bool:
    """Every term of the query is a term of the text."""
    wanted = analyze_query(query)
    return bool(wanted) and set(wanted) <= set(analyze(text, language))


def touches(query: str, text: str, language: str = "") -> bool:
    return bool(set(analyze_query(query)) & set(analyze(text, language)))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("rotate key", "Rotating the signing keys"),
        ("RÉSUMÉ", "resume"),
        ("resume", "her résumé"),
        ("naive", "naïve"),
        ("strasse", "Straße"),
        ("C++", "Modern C++ templates"),
        ("cpp", "Modern C++ templates"),
        ("C#", "written in C#."),
        (".NET", "on the .NET runtime"),
        ("dotnet", "on .NET"),
        ("node.js", "Node.js 18"),
        ("nodejs", "Node.js 18"),
        ("email", "send an e-mail"),
        ("foo_bar", "call fooBar()"),
        ("fooBar", "call foo_bar()"),
        ("foo bar", "call foo_bar()"),
        ("HTTP server", "class HTTPServer:"),
        ("api", "public APIs"),
        ("3.11", "Python 3.11.4"),
        ("v3.11", "since 3.11"),
        ("python3.11", "python3.11 -m venv"),
        ("ann@example.com", "write to Ann@example.com"),
        ("full width", "ＦＵＬＬ ｗｉｄｔｈ"),
        ("utf 8", "UTF-8"),
        ("user", "the user's keys"),
        ("user", "the user’s keys"),
        ("金鑰", "如何輪替簽署金鑰"),
        ("密钥", "如何轮换签名密钥"),
        ("鑰", "如何輪替簽署金鑰"),
        ("署名鍵", "署名鍵を交換する"),
        ("ガラス", "ｶﾞﾗｽの器"),
        ("서명 키", "서명 키를 교체"),
        ("ключ", "подписные ключи"),
        ("ключами", "ключ"),
        ("елка", "ёлка"),
        ("Ελλαδα", "στην Ελλάδα"),
        ("ภาษา", "ภาษาไทย"),
        ("🚀", "launch 🚀 day"),
        ("C语言", "学习C语言"),
    ],
)
def test_query_meets_text(query: str, text: str) -> None:
    assert meets(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("C++", "vitamin C"),
        ("C#", "vitamin C"),
        ("3.1", "Python 3.11.4"),
        ("shell", "she'll come"),
        ("署金", "署 金"),
        ("key", "金鑰"),
        ("йод", "иод"),
    ],
)
def test_query_does_not_meet_text(query: str, text: str) -> None:
    assert not touches(query, text)


def test_a_hyphen_more_still_touches() -> None:
    assert touches("e-mail", "your email address")


def test_terms_of_compounds_in_order() -> None:
    assert analyze("parseJSON") == ["parsejson", "pars", "json"]
    assert analyze("state-of-the-art", "en") == ["stateoftheart", "state", "art"]
    assert analyze("release 2.10.3") == ["releas", "2.10.3", "2.10"]
    assert analyze("1.2.3.4.5.6") == ["1.2.3.4.5.6", "1.2.3", "1.2"]
    assert analyze("don't panic") == ["dont", "panic"]


def test_a_lone_character_is_looked_up_but_a_longer_run_only_by_its_pairs() -> None:
    assert analyze("金鑰") == ["金", "金钥", "钥"]
    assert analyze_query("金鑰") == ["金钥"]
    assert analyze_query("金 鑰") == ["金", "钥"]


def test_stop_words_leave_documents_and_queries_of_their_language() -> None:
    assert analyze("The keys of the house", "en") == ["key", "hous"]
    assert analyze("Die Schlüssel", "de") == ["schlussel"]
    assert analyze("The die is cast", "de")[0] == "the"
    assert analyze_query("Wie kann ich die Datei löschen?") == ["datei", "losch"]
    assert analyze_query("如何更換金鑰") == ["何更", "更换", "换金", "金钥"]


def test_a_query_of_stop_words_alone_keeps_them_with_their_repetition() -> None:
    assert analyze_query("to be or not to be") == ["to", "be", "or", "not", "to", "be"]
    assert analyze_query("什麼") == ["什么"]


def test_abbreviations_in_capitals_are_no_stop_words() -> None:
    assert meets("WHO guidelines", "The WHO published guidelines", "en")
    assert analyze_query("IT support") == ["it", "support"]
    assert analyze_query("WHAT IS THE WHO") == analyze_query("what is the who")


def test_repetition_is_kept_because_it_weighs() -> None:
    assert analyze("key key lock") == ["key", "key", "lock"]
    assert analyze_query("key key lock") == ["key", "key", "lock"]


def test_another_language_adds_its_own_stem_and_any_query_finds_it() -> None:
    assert analyze("Häuser", "de") == ["hauser", "haus"]
    assert meets("Häuser", "Häuser", "de")  # language of the query cannot be told
    assert meets("Haus", "alte Häuser", "de")


@pytest.mark.parametrize(
    "text", ["", " ", "?!…", "。！？", "\0", "()[]{}", "\N{RIGHT-TO-LEFT MARK}", '"', "-"]
)
def test_nothing_to_look_up(text: str) -> None:
    assert analyze(text) == []
    assert analyze_query(text) == []


def test_operators_of_query_languages_are_plain_words() -> None:
    assert analyze_query("NEAR(key, lock)") == ["near", "key", "lock"]
    assert analyze_query("-x col:y") == ["x", "col", "y"]


def test_long_tokens_are_cut_alike_on_both_sides() -> None:
    blob = "aB3" * 10_000
    assert analyze(blob) == analyze_query(blob) == [blob.casefold()[:MAX_TERM]]


def test_huge_dotted_number_stays_small() -> None:
    number = ".".join("12" for _ in range(50_000))
    assert [len(term) for term in analyze(number)] == [MAX_TERM, 8, 5]


_ANY_TEXT = st.text(
    st.characters(codec="utf-8") | st.sampled_from("aZé_.-'’@#+12 .NET金鑰かな한글กำ\u0301ёйς🚀Ⅷﬃ"),
    max_size=80,
)


@given(_ANY_TEXT, st.sampled_from(["", "en", "de", "fr", "ru", "zh", "ja", "xx"]))
def test_terms_are_clean(text: str, language: str) -> None:
    for term in (*analyze(text, language), *analyze_query(text, language)):
        assert term
        assert len(term) <= MAX_TERM
        for character in term:
            category = unicodedata.category(character)
            # Letters, marks, numbers and symbols only; a point stands between digits. Python may be older
            # than the newest ideographs and pictographs.
            newer = category == "Cn" and ord(character) >= 0x1F300
            assert category[0] in "LMNS" or newer or character in TERM_PUNCTUATION, (term, category)
        if "." in term:
            assert any(character.isdigit() for character in term)


@given(_ANY_TEXT)
def test_a_text_is_found_by_itself(text: str) -> None:
    """What a query looks up, the same words indexed in the same language have; stop words aside."""
    assert set(analyze_query(text, "xx")) <= set(analyze(text, ""))


@given(_ANY_TEXT)
def test_normal_forms_give_the_same_terms(text: str) -> None:
    assert analyze(unicodedata.normalize("NFD", text)) == analyze(unicodedata.normalize("NFC", text))


@given(_ANY_TEXT, st.sampled_from(["", "en", "de", "zh", "ru"]))
def test_terms_with_places_are_the_same_terms(text: str, language: str) -> None:
    placed = analyze_spans(text, language)
    assert [term.text for term in placed] == analyze(text, language)
    for term in placed:
        assert 0 <= term.start < term.end <= len(text)
        # What is marked, analysed by itself, gives the term again: nothing beside the word is marked.
        if len(term.text) < 3 or not term.text.isalpha() or not text.isascii():
            continue
        assert term.text in analyze(text[term.start : term.end], language), (term, text)


@pytest.mark.parametrize(
    ("text", "term", "marked"),
    [
        ("Signing keys, rotated.", "rotat", ["rotated"]),
        ("parseJSON and parse_json", "json", ["JSON", "json"]),
        ("the user's guide", "user", ["user"]),
        ("use C++ or c++", "cpp", ["C++", "c++"]),
        ("version v3.11.4", "3.11", ["3.11"]),
        ("先更換金鑰，金钥再停用", "金钥", ["金鑰", "金钥"]),
        ("鑰", "钥", ["鑰"]),
        ("ＡＰＩ 與㏒", "api", ["ＡＰＩ"]),
        ("résumé, re\u0301sume\u0301", "resum", ["résumé", "re\u0301sume\u0301"]),
        ("用Python寫", "python", ["Python"]),
        ("e-mail or email", "email", ["e-mail", "email"]),
    ],
)
def test_places_are_those_of_the_word_in_the_text(text: str, term: str, marked: list[str]) -> None:
    assert [
        text[place.start : place.end] for place in analyze_spans(text, "en") if place.text == term
    ] == marked


def test_threads_agree() -> None:
    words = [f"running{i} connections{i} relational{i} générations{i}" for i in range(300)]
    alone = [analyze(text, "fr") for text in words]
    results: list[list[list[str]]] = []

    def work() -> None:
        results.append([analyze(text.replace("0", "0"), "fr") for text in words])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [alone] * 4


def bm25_ndcg(folder: Path) -> float:
    """Mean nDCG@10 of textbook BM25 (k1 1.2, b 0.75) over the terms, graded gains, log2 discount."""
    corpus, queries = _records(folder, "corpus"), _records(folder, "queries")
    qrels: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, gain = line.split("\t")
        qrels.setdefault(query, {})[document] = int(gain)
    postings: dict[str, list[tuple[int, int]]] = {}
    lengths = []
    for number, record in enumerate(corpus):
        text = f"{record.get('title', '')} {record['text']}"
        terms = Counter(analyze(text, detect_language(text)))
        lengths.append(terms.total())
        for term, count in terms.items():
            postings.setdefault(term, []).append((number, count))
    mean = sum(lengths) / len(corpus)
    values = []
    for record in queries:
        gains = qrels.get(record["_id"])
        if not gains:
            continue
        scores: dict[int, float] = {}
        for term in analyze_query(record["text"]):
            found = postings.get(term, [])
            idf = math.log(1 + (len(corpus) - len(found) + 0.5) / (len(found) + 0.5))
            for number, count in found:
                share = count * 2.2 / (count + 1.2 * (0.25 + 0.75 * lengths[number] / mean))
                scores[number] = scores.get(number, 0.0) + idf * share
        ranked = sorted(scores, key=lambda number: (-scores[number], number))[:10]
        gained = [gains.get(corpus[number]["_id"], 0) for number in ranked]
        values.append(_dcg(gained) / _dcg(sorted(gains.values(), reverse=True)[:10]))
    return sum(values) / len(values)


def _records(folder: Path, name: str) -> list[dict[str, str]]:
    (path,) = folder.glob(f"{name}.jsonl*")
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.decode("utf-8").split("\n") if line]


def _dcg(gains: list[int]) -> float:
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))


@pytest.mark.data
@pytest.mark.parametrize(("name", "least"), [("adi", 0.483), ("cranfield", 0.365)])
def test_retrieval_is_as_good_as_stemming_and_stop_words_make_it(
    name: str, least: float, data_dir: Path
) -> None:
    """Against bm25s with Snowball stemming and English stop words: .483 and .370."""
    assert bm25_ndcg(data_dir / name) >= least
