from __future__ import annotations

import codecs
import zipfile
from pathlib import Path

import pytest

from likewise.index.readers.base import Unreadable
from likewise.index.readers.decoding import decode
from likewise.index.records import DocumentState

ENGLISH = "Rotate the signing key every ninety days, or sooner if it leaks. "
TRADITIONAL = "簽署金鑰應每九十天輪替一次，若有外洩之虞則應立即更換，並通知所有使用者。" * 4
SIMPLIFIED = "签名密钥应每九十天轮换一次，如有泄露风险则应立即更换，并通知所有用户。" * 4
JAPANESE = "署名鍵は九十日ごとに交換し、漏洩のおそれがあるときは直ちに取り替えてください。" * 4
RUSSIAN = "Ключ подписи следует менять каждые девяносто дней, а при утечке немедленно. " * 4


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (TRADITIONAL, "big5"),
        (SIMPLIFIED, "gb18030"),
        (SIMPLIFIED, "hz"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "iso2022_jp"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (ENGLISH, "ascii"),
        (TRADITIONAL, "utf-8"),
        (TRADITIONAL, "utf-8-sig"),
        (TRADITIONAL, "utf-16"),
        ("Keys\r\n" + SIMPLIFIED, "utf-16-le"),
        (ENGLISH, "utf-16-be"),
        (JAPANESE, "utf-32"),
    ],
)
def test_the_encoding_is_found_without_being_told(text: str, encoding: str) -> None:
    decoded = decode(text.encode(encoding))
    assert (decoded.text, decoded.lossy) == (text, 0)


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    assert decode(codecs.BOM_UTF8 + b"# Keys").text == "# Keys"


def test_line_ends_stay_as_they_are() -> None:
    assert decode(b"a\r\nb\rc\n").text == "a\r\nb\rc\n"


def test_valid_utf8_wins_over_a_stale_declaration() -> None:
    assert decode("鍵".encode(), declared="big5").text == "鍵"


def test_a_declaration_wins_over_detection() -> None:
    # "Ä" in cp1252, "ń" or "Д" elsewhere: four bytes that only the declaration can tell.
    assert decode(b"\xc4\xd6\xdc \xe4", declared="iso-8859-1").text == "ÄÖÜ ä"


@pytest.mark.parametrize("declared", ["no-such-codec", "utf-16", "rot13", "", "\0"])
def test_a_declaration_that_cannot_be_true_is_ignored(declared: str) -> None:
    assert decode(RUSSIAN.encode("cp1251"), declared=declared).text == RUSSIAN


def test_a_cut_character_does_not_make_it_another_encoding() -> None:
    decoded = decode(TRADITIONAL.encode()[:-1])
    assert decoded.encoding == "utf-8"
    assert decoded.text == TRADITIONAL[:-1] + "\ufffd"
    assert decoded.lossy == 1


def test_a_nul_far_into_a_text_is_replaced_in_place_and_counted() -> None:
    data = b"a" * 9000 + b"\0" + b"b"
    decoded = decode(data)
    assert decoded.text == "a" * 9000 + "\ufffd" + "b"
    assert decoded.lossy == 1


@pytest.mark.parametrize("data", [bytes(range(256)) * 40, b"\0" * 100, b"\x01\x02\x03\x04" * 50])
def test_binary_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable) as caught:
        decode(data)
    assert caught.value.state is DocumentState.UNSUPPORTED


def test_a_file_that_only_might_be_text_must_decode_cleanly() -> None:
    broken = TRADITIONAL.encode()[:-1]
    with pytest.raises(Unreadable, match="characters fail in utf-8"):
        decode(broken, strict=True)
    assert decode(broken).lossy == 1


@pytest.mark.data
def test_the_declaration_of_human_rights_in_its_old_encodings(data_dir: Path) -> None:
    """Measured: 388 of 388 in UTF-8, 290 of 316 in the encoding of the name, which is not always true."""
    for archive, least in (("udhr2", 388), ("udhr", 285)):
        right = 0
        with zipfile.ZipFile(data_dir / "udhr" / f"{archive}.zip") as files:
            for name in files.namelist():
                if name.endswith("/") or "README" in name:
                    continue
                codec = _CODECS.get(name.rpartition("-")[2], "") if archive == "udhr" else "utf-8"
                if codec:
                    data = files.read(name)
                    want = data.decode(codec, "replace").lstrip("\ufeff")
                    right += _alike(decode(data).text, want)
        assert right >= least, archive


_CODECS = {
    "Latin1": "cp1252", "UTF8": "utf-8", "GB2312": "gb18030", "SJIS": "cp932", "EUC": "euc_jp",
    "Big5": "big5",
    "Latin2": "iso8859_2", "Cyrillic": "cp1251", "HZ": "hz", "Hebrew": "cp1255", "Arabic": "cp1256",
    "Greek": "iso8859_7", "JIS": "iso2022_jp", "KOI8": "koi8_r",
}  # fmt: skip


def _alike(text: str, want: str) -> bool:
    same = sum(a == b for a, b in zip(text, want, strict=False))
    return len(text) == len(want) and same >= 0.99 * len(want)
