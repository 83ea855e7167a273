"""Chinese in the lexical index: both orthographies, widths, punctuation, single characters, mixed text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.index.analyzer import analyze, analyze_query
from likewise.index.chinese_variants import variants


@pytest.mark.parametrize(
    ("traditional", "simplified"),
    [
        ("簽署金鑰每年輪替一次", "签署金钥每年轮替一次"),
        ("皇后以後頭髮發白", "皇后以后头发发白"),
        ("看著乾淨的檯面", "看着干净的台面"),
        ("瞭解答覆的裏面與裡面", "了解答复的里面与里面"),
        ("衞生署爲羣眾設置", "卫生署为群众设置"),
        ("資料庫與網際網路", "资料库与网际网路"),
    ],
)
def test_traditional_and_simplified_give_the_same_terms(traditional: str, simplified: str) -> None:
    assert analyze(traditional, "zh") == analyze(simplified, "zh")
    assert analyze_query(traditional) == analyze_query(simplified)
    assert analyze_query(traditional) and set(analyze_query(traditional)) <= set(analyze(simplified, "zh"))


def test_the_table_folds_in_one_step_and_changes_nothing_else() -> None:
    table = variants()
    assert len(table) > 2900
    for other, stands in table.items():
        assert len(stands) == 1 and ord(stands) not in table, chr(other)
        # Folding comes after NFKC and must not undo it.
        assert unicodedata.normalize("NFKC", chr(other) + stands) == chr(other) + stands
        assert unicodedata.name(chr(other)).startswith("CJK UNIFIED IDEOGRAPH")
    assert "漢字かなカナ한글abc。".translate(table) == "汉字かなカナ한글abc。"


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("ＡＰＩ金鑰", "API金鑰"),  # full-width letters
        ("２０２５年", "2025年"),
        ("版本３．１１", "版本3.11"),
        ("ﾃﾞｰﾀ", "データ"),  # half-width kana
        ("㍿", "株式会社"),
    ],
)
def test_widths_and_compatibility_forms_are_one(typed: str, written: str) -> None:
    assert analyze(typed) == analyze(written)


@pytest.mark.parametrize("mark", "，,、。．.：:；;！!？?「」『』《》—…～·()（）【】 \u3000")
def test_punctuation_separates_whatever_its_form(mark: str) -> None:
    assert analyze(f"金鑰{mark}輪替") == [*analyze("金鑰"), *analyze("輪替")]


def test_chinese_and_english_in_one_run_come_apart() -> None:
    assert analyze_query("用Python寫API") == ["用", "python", "写", "api"]
    assert set(analyze_query("用Python写API")) <= set(analyze("我用 Python 寫 API。", "zh"))
    assert analyze_query("C++語言") == ["cpp", "语言"]
    assert analyze_query("Python3的電池") == ["python3", "python", "的电", "电池"]


def test_a_single_character_is_found_in_any_word() -> None:
    for query, text in [("鑰", "金鑰"), ("钥", "金鑰匙"), ("龍", "龙卷风")]:
        assert analyze_query(query)[0] in analyze(text, "zh")


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=12))
def test_folding_a_text_first_changes_no_term(text: str) -> None:
    assert analyze(text) == analyze(text.translate(variants()))
    assert set(analyze_query(text, "xx")) <= set(analyze(text))
