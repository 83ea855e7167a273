"""Language detection: right on prose, silent without evidence."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.index.language import detect_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The keys are rotated every month, and the old ones are kept for a year.", "en"),
        ("how do I rotate a signing key", "en"),
        ("Die Schlüssel werden jeden Monat gewechselt und ein Jahr lang aufbewahrt.", "de"),
        ("Les clés sont changées chaque mois et les anciennes sont gardées pendant un an.", "fr"),
        ("Las claves se cambian cada mes y las antiguas se guardan durante un año.", "es"),
        ("Le chiavi vengono cambiate ogni mese e quelle vecchie sono conservate per un anno.", "it"),
        ("As chaves são trocadas todos os meses e as antigas são guardadas por um ano.", "pt"),
        ("De sleutels worden elke maand vervangen en de oude worden een jaar bewaard.", "nl"),
        ("Nycklarna byts varje månad och de gamla sparas i ett år för att vara säker.", "sv"),
        ("Ключи меняются каждый месяц, и старые хранятся в течение года.", "ru"),
        ("簽署金鑰每個月輪替一次，舊的保留一年。", "zh"),
        ("签名密钥每个月轮换一次，旧的保留一年。", "zh"),
        ("署名鍵は毎月交換し、古い鍵は一年間保管します。", "ja"),
        ("서명 키는 매달 교체하며 이전 키는 일 년 동안 보관합니다.", "ko"),
        ("يتم تغيير المفاتيح كل شهر", "ar"),
        ("Τα κλειδιά αλλάζουν κάθε μήνα", "el"),
        ("המפתחות מוחלפים בכל חודש", "he"),
        ("चाबियाँ हर महीने बदली जाती हैं", "hi"),
        ("กุญแจจะถูกเปลี่ยนทุกเดือน", "th"),
    ],
)
def test_prose(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize(
    "text", ["", " \n", "3.14159 + 42", "a8f3e0 77bc", "x = y * z", "!!! ??? ---", "🚀🚀"]
)
def test_no_evidence_no_language(text: str) -> None:
    assert detect_language(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        # Polish, Turkish, Vietnamese: each has short words that a known language has too.
        "Na początku był chaos, a do domu szedł on sam. Jak co dzień, ale o tej porze to było dziwne. " * 4,
        "Bu sabah bir an durdum ve o eve baktım; her gün o yoldan geçerim, o da beni bilir. " * 6,
        "Tôi đi ra chợ mua cá, rau và con gà. Sau đó tôi về nhà nấu cơm cho cả gia đình. " * 6,
    ],
)
def test_a_language_that_is_not_known_is_not_taken_for_another(text: str) -> None:
    assert detect_language(text) == ""


def test_code_does_not_outvote_prose() -> None:
    code = "def rotate(key):\n    return store.replace(key, generate(bits=4096))\n" * 5
    assert detect_language("輪替金鑰時先產生新的一把，再停用舊的。\n" + code) == "zh"


def test_a_long_text_is_judged_by_more_than_its_beginning() -> None:
    licence = "This is the licence of the work and it is to be kept with all of the copies. " * 40
    assert detect_language(licence + "簽署金鑰每個月輪替一次，舊的保留一年。" * 2000) == "zh"


@given(st.text(max_size=200))
def test_any_text_gives_a_code_or_nothing(text: str) -> None:
    assert len(detect_language(text)) in (0, 2)


@pytest.mark.data
@pytest.mark.parametrize(
    ("folder", "language"), [("en", "en"), ("zh", "zh"), ("zh-hant", "zh"), ("ja", "ja")]
)
def test_real_documentation(data_dir: Path, folder: str, language: str) -> None:
    files = sorted((data_dir / "docs-fastapi" / folder).rglob("*.md"))
    assert len(files) > 100
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    wrong = [name for name, text in texts.items() if len(text) > 300 and detect_language(text) != language]
    assert len(wrong) <= 0.02 * len(files), wrong


@pytest.mark.data
def test_the_declaration_of_human_rights(data_dir: Path) -> None:
    known = {
        "arb": "ar", "cmn_hans": "zh", "cmn_hant": "zh", "deu": "de", "ell_monotonic": "el", "eng": "en",
        "fra": "fr", "heb": "he", "hin": "hi", "ita": "it", "jpn": "ja", "kor": "ko", "nld": "nl",
        "por_PT": "pt", "rus": "ru", "spa": "es", "swe": "sv", "tha": "th",
    }  # fmt: skip
    with zipfile.ZipFile(data_dir / "udhr" / "udhr2.zip") as archive:
        found = {
            Path(name).stem: detect_language(archive.read(name).decode("utf-8", "replace"))
            for name in archive.namelist()
            if name.endswith(".txt")
        }
    assert {name: found[name] for name in known} == known
    others = [language for name, language in found.items() if name not in known]
    # Arabic and Devanagari stand for all languages that are written in them, which are most of the rest.
    assert others.count("") >= 0.93 * len(others)
