"""Each kind of pair, out of small documents in English and Chinese: the exact texts, and where they stand."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from likewise.retrieval.pairs.cloze import neighbour_pairs, sentence_pairs
from likewise.retrieval.pairs.documents import PairDocument
from likewise.retrieval.pairs.links import Targets, link_pairs, links_of
from likewise.retrieval.pairs.parallel import parallel_documents, parallel_pairs
from likewise.retrieval.pairs.questions import question_pairs
from likewise.retrieval.pairs.records import TextPair
from likewise.retrieval.pairs.titles import heading_pairs, title_pairs

Read = Callable[..., PairDocument]

KEYS = """# Signing keys

Signing keys are kept in the vault, and nobody takes them out without the security team.

## Rotation of keys

Rotate the signing key once a year. Create the new key first, then retire the old one slowly.

Tell the security team before you begin with the rotation of any key.

## Notes

Short.
"""

ZH = """# 簽署金鑰

金鑰存放在保險庫中，未經資安團隊同意不得取出，違者依照規定處理。

## 金鑰輪替

簽署金鑰每年輪替一次。先建立新的金鑰，再停用舊的金鑰，並通知所有團隊。
"""


def texts(pairs: object) -> list[tuple[str, str]]:
    return [(pair.anchor, pair.positive) for pair in pairs]  # type: ignore[attr-defined]


def places(pair: TextPair) -> tuple[str, tuple[int, int], str, int | None]:
    return pair.source, pair.lines, pair.anchor_source, pair.anchor_line


def test_title(read: Read) -> None:
    (pair,) = title_pairs(read("docs/keys.md", KEYS))
    assert pair.anchor == "Signing keys"
    assert pair.positive.startswith("Signing keys are kept in the vault, and nobody")
    assert "# Signing keys" not in pair.positive
    assert places(pair) == ("docs/keys.md", (1, 13), "docs/keys.md", 1)


def test_title_out_of_the_front_matter(read: Read) -> None:
    front = "---\ntitle: Signing keys\n---\n"
    body = "They are kept in the vault, and nobody takes them out without the security team.\n"
    (pair,) = title_pairs(read("keys.md", front + body))
    assert pair.anchor == "Signing keys" and pair.positive.endswith(body.strip())
    assert pair.anchor_line in (2, None) and pair.lines[1] == 4


def test_chinese_title(read: Read) -> None:
    (pair,) = title_pairs(read("zh/金鑰.md", ZH))
    assert pair.anchor == "簽署金鑰"
    assert pair.positive.startswith("金鑰存放在保險庫中") and places(pair) == (
        "zh/金鑰.md",
        (1, 7),
        "zh/金鑰.md",
        1,
    )


def test_heading(read: Read) -> None:
    (pair,) = heading_pairs(read("keys.md", KEYS))
    assert pair.anchor == "Rotation of keys"
    assert pair.positive == (
        "Signing keys\n"
        "Rotate the signing key once a year. Create the new key first, then retire the old one slowly.\n\n"
        "Tell the security team before you begin with the rotation of any key."
    )
    assert places(pair) == ("keys.md", (7, 9), "keys.md", 5)


def test_chinese_heading(read: Read) -> None:
    (pair,) = heading_pairs(read("金鑰.md", ZH))
    assert texts([pair]) == [
        (
            "金鑰輪替",
            "簽署金鑰\n簽署金鑰每年輪替一次。先建立新的金鑰，再停用舊的金鑰，並通知所有團隊。",
        )
    ]
    assert places(pair) == ("金鑰.md", (7, 7), "金鑰.md", 5)


def test_headings_of_other_formats(read: Read) -> None:
    rst = (
        "Signing keys\n============\n\n" + "Kept in the vault by the security team. " * 6 + "\n\n"
        "Key rotation\n------------\n\n"
        + "Rotate the old signing key once every year and tell everybody. "
        * 6
    )
    found = list(heading_pairs(read("keys.rst", rst, tokens=60)))
    assert {pair.anchor for pair in found} == {"Key rotation"}
    assert found[0].positive.startswith("Signing keys\nRotate the old signing key")
    assert found[0].anchor_line == 6 and found[0].lines[0] == 9


def test_a_document_without_headings_has_no_heading_pairs(read: Read) -> None:
    plain = read(
        "notes.txt", "Lunch is at noon. The canteen closes at two, and opens again for dinner at six."
    )
    assert list(heading_pairs(plain)) == [] and list(title_pairs(plain)) == []


def test_sentence(read: Read) -> None:
    document = read("keys.md", KEYS)
    (pair,) = sentence_pairs(document, Random(3))
    assert pair.anchor not in pair.positive and pair.anchor in document.text
    assert pair.positive.startswith("Signing keys\n# Signing keys\n")
    first = KEYS.splitlines()[(pair.anchor_line or 0) - 1]
    assert pair.anchor in first
    # Every sentence of prose is drawn sooner or later, headings and scraps never.
    drawn = {pair.anchor for seed in range(60) for pair in sentence_pairs(document, Random(seed))}
    assert drawn == {
        "Signing keys are kept in the vault, and nobody takes them out without the security team.",
        "Rotate the signing key once a year.",
        "Create the new key first, then retire the old one slowly.",
        "Tell the security team before you begin with the rotation of any key.",
    }


def test_chinese_sentence(read: Read) -> None:
    drawn = {p.anchor: p for seed in range(30) for p in sentence_pairs(read("金鑰.md", ZH), Random(seed))}
    assert "先建立新的金鑰，再停用舊的金鑰，並通知所有團隊。" in drawn
    assert drawn["先建立新的金鑰，再停用舊的金鑰，並通知所有團隊。"].anchor_line == 7


def test_neighbours(read: Read) -> None:
    one = "Rotate the signing key once a year, on the first Monday of March, before lunch, with a colleague."
    two = "Write into the log who rotated which key, and keep the old public key for thirty more days."
    (pair,) = neighbour_pairs(
        read("keys.md", f"# Signing keys\n\n## Rotation\n\n{one}\n\n{two}\n", tokens=40)
    )
    assert pair.anchor.endswith(one) and pair.positive == f"Signing keys > Rotation\n{two}"
    assert pair.lines == (7, 7) and pair.anchor_line in (1, 5)
    # Dumps have neighbours too, but nothing to say.
    dump = '{"Min"=0,"Flags"=0,"Report"=1,"Usage"=173,"Count"=1,"Unit"=0,"Null"=1,"Max"=1,"Size"=8}'
    assert not list(neighbour_pairs(read("k.md", f"# Signing keys\n\n{dump}\n\n{dump}\n", tokens=40)))
    # Under another heading something else begins.
    assert not list(neighbour_pairs(read("k.md", f"# Signing keys\n\n{one}\n\n## Log\n\n{two}\n", tokens=40)))


FAQ = """# Frequent questions

## How often are signing keys rotated?

Once a year, on the first Monday of March.

## Backups

Q: How long are backups kept?
A: For thirty days, and not a day longer than that.

**Q2.** Who restores a backup
that was lost?

**A2.** The officer on duty.
Call the number on the door.

**When does a backup run?**

Every night at two.
"""


def test_questions(read: Read) -> None:
    pairs = list(question_pairs(read("faq.md", FAQ)))
    assert texts(pairs) == [
        (
            "How often are signing keys rotated?",
            "Frequent questions\nOnce a year, on the first Monday of March.",
        ),
        ("How long are backups kept?", "For thirty days, and not a day longer than that."),
        ("Who restores a backup that was lost?", "The officer on duty.\nCall the number on the door."),
        ("When does a backup run?", "Every night at two."),
    ]
    assert [(pair.anchor_line, pair.lines) for pair in pairs] == [
        (3, (5, 5)),
        (9, (10, 10)),
        (12, (15, 16)),
        (18, (20, 20)),
    ]


def test_chinese_questions(read: Read) -> None:
    text = "# 常見問題\n\n## 金鑰多久輪替一次？\n\n每年一次，在三月的第一個星期一，由兩人一起完成。\n\n"
    marked = "## 备份\n\n问：备份保留多久？\n答：保留三十天，一天也不多。\n\n"
    marked += "問題：備份由誰還原？\n回答：由值班人員還原。\n"
    assert texts(question_pairs(read("faq.md", text + marked))) == [
        ("金鑰多久輪替一次？", "常見問題\n每年一次，在三月的第一個星期一，由兩人一起完成。"),
        ("备份保留多久？", "保留三十天，一天也不多。"),
        ("備份由誰還原？", "由值班人員還原。"),
    ]


def test_a_letter_is_no_question(read: Read) -> None:
    assert (
        list(question_pairs(read("notes.md", "# Plan\n\nA: first step\nB: second step\n\nAll: done.\n")))
        == []
    )


LINKING = """# Handbook

Before you sign, read [how signing keys work](docs/keys.md), then [the key rotation][rot], and look at
[[docs/backups|our nightly backups]]. See [here](docs/keys.md), [a site](https://example.org/docs/keys.md),
[keys in code](docs/missing.md) and ![a picture of keys](docs/keys.md).

```
[key vault setup](docs/keys.md)
```

[rot]: docs/keys.md#rotation-of-keys
"""


def test_links(read: Read) -> None:
    backups = "# Backups\n\nBackups run every night at two, and they are kept for thirty days in the vault.\n"
    documents = {
        key: read(key, text)
        for key, text in {"index.md": LINKING, "docs/keys.md": KEYS, "docs/backups.md": backups}.items()
    }
    pairs = list(link_pairs(documents["index.md"], documents, Targets(documents)))
    assert [pair.anchor for pair in pairs] == [
        "how signing keys work",
        "the key rotation",
        "our nightly backups",
    ]
    assert [pair.source for pair in pairs] == ["docs/keys.md", "docs/keys.md", "docs/backups.md"]
    assert [(pair.anchor_line, pair.lines) for pair in pairs] == [(3, (1, 13)), (3, (7, 9)), (4, (1, 3))]
    assert pairs[1].positive.startswith("Signing keys\nRotate the signing key once a year.")


def test_links_of_html(read: Read) -> None:
    page = """<html><head><title>Start</title></head><body>
<nav><a href="docs/backups.html">all our nightly backups</a></nav>
<h1>Start</h1>
<p>Read <a href="docs/keys.html">how signing keys work</a> first.</p>
<ul><li><a href="docs/keys.html#rotation-of-keys">the <em>key</em> rotation</a></li>
<li><a href="docs/keys.html#no-such">a lost section</a></li>
<li><a href="https://example.com/docs/keys.html">an outside page</a></li>
<li><a href="docs/备份.html">每天凌晨的备份</a></li></ul></body></html>"""
    keys = """<title>Signing keys</title><h1>Signing keys</h1>
<p>Keys are kept in the vault of the security team, and no key ever leaves it without a permit.</p>
<h2 id="rotation-of-keys">Rotation of keys<a href="#rotation-of-keys">¶</a></h2>
<p>Rotate the signing key once a year. Create the new key first, then retire the old one at once.</p>"""
    chinese = "<h1>备份</h1><p>备份每天凌晨两点运行，保留三十天。恢复备份时，先停止服务，再复制归档。</p>"
    documents = {
        key: read(key, text, tokens=30)
        for key, text in {"index.html": page, "docs/keys.html": keys, "docs/备份.html": chinese}.items()
    }
    pairs = list(link_pairs(documents["index.html"], documents, Targets(documents)))
    assert [(pair.anchor, pair.source, pair.anchor_line) for pair in pairs] == [
        ("how signing keys work", "docs/keys.html", 5),
        ("the key rotation", "docs/keys.html", 7),
        ("每天凌晨的备份", "docs/备份.html", 10),
    ]
    assert pairs[1].positive.startswith("Signing keys\nRotate the signing key once a year.")
    assert "备份每天凌晨两点运行，保留三十天。" in pairs[2].positive


def test_links_of_restructured_text(read: Read) -> None:
    rst = read("a.rst", "See :doc:`the signing keys <keys>` and `the vault <vault.rst>`_, not ``x <y>``.\n")
    assert [(link.text, link.target) for link in links_of(rst)] == [
        ("the signing keys", "keys"),
        ("the vault", "vault.rst"),
    ]


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        ("en/a.md", "b.md", "en/b.md"),
        ("en/a.md", "../zh/b.md#x", "zh/b.md"),
        ("en/a.md", "b/", "en/b.md"),
        ("en/a.md", "/zh/b", "zh/b.md"),
        ("en/a.md", "c", "en/c/index.md"),
        ("en/a.md", "b%2Emd?x=1", "en/b.md"),
        ("en/a.md", "#here", "en/a.md"),
        ("en/a.md", "../../out.md", None),
        ("en/a.md", "mailto:b.md", None),
        ("en/a.md", "//host/en/b.md", None),
    ],
)
def test_where_links_lead(source: str, target: str, found: str | None) -> None:
    assert Targets(["en/a.md", "en/b.md", "zh/b.md", "en/c/index.md"]).find(source, target) == found


EN_PARALLEL = """# Signing keys

Keys are kept in the vault.

```
rotate --now
```

Rotate every key once a year.

## Key revocation

A revoked key is listed in the bulletin.
"""
ZH_PARALLEL = """# 簽署金鑰

金鑰存放在保險庫中。

```
rotate --now
```

每把金鑰每年輪替一次。

## 撤銷金鑰

已撤銷的金鑰會列在公告中。
"""


def test_parallel(read: Read) -> None:
    documents = {
        "docs/en/keys.md": read("docs/en/keys.md", EN_PARALLEL),
        "docs/zh-hant/keys.md": read("docs/zh-hant/keys.md", ZH_PARALLEL),
    }
    pairs = list(parallel_pairs(documents))
    assert texts(pairs) == [
        ("Keys are kept in the vault.", "金鑰存放在保險庫中。"),
        ("Rotate every key once a year.", "每把金鑰每年輪替一次。"),
        ("Key revocation", "撤銷金鑰"),
        ("A revoked key is listed in the bulletin.", "已撤銷的金鑰會列在公告中。"),
    ]
    assert [(pair.anchor_line, pair.lines) for pair in pairs] == [
        (3, (3, 3)),
        (9, (9, 9)),
        (11, (11, 11)),
        (13, (13, 13)),
    ]
    assert {places(pair)[::2] for pair in pairs} == {("docs/zh-hant/keys.md", "docs/en/keys.md")}


@pytest.mark.parametrize(
    "translated",
    [
        ZH_PARALLEL.replace("## 撤銷金鑰\n", "撤銷金鑰\n"),  # another outline
        EN_PARALLEL,  # not translated: it is not in the language of its path
    ],
)
def test_what_does_not_agree_is_left_out(read: Read, translated: str) -> None:
    documents = {"en/keys.md": read("en/keys.md", EN_PARALLEL), "zh/keys.md": read("zh/keys.md", translated)}
    assert list(parallel_pairs(documents)) == []


def test_a_section_with_other_paragraphs_is_left_out(read: Read) -> None:
    more = ZH_PARALLEL.replace("已撤銷", "請先致電值班人員。\n\n已撤銷")
    documents = {"en/keys.md": read("en/keys.md", EN_PARALLEL), "zh/keys.md": read("zh/keys.md", more)}
    assert [pair.anchor for pair in parallel_pairs(documents)] == [
        "Keys are kept in the vault.",
        "Rotate every key once a year.",
        "Key revocation",
    ]


def test_folders_that_only_look_like_languages(read: Read) -> None:
    documents = {
        key: read(key, EN_PARALLEL.replace("year", word))
        for key, word in [("it/a.md", "x"), ("no/a.md", "y")]
    }
    assert parallel_documents(documents) == [("it/a.md", "no/a.md")]
    assert list(parallel_pairs(documents)) == []
