"""Stop a writer at every single step it takes, and look at what is left; run as a script by the tests.

    python crash_harness.py FOLDER PROTOCOL MODE ...

A child process does a fixed piece of work (write, publish, write ...) through a `FileSystem` that ends the
process at its n-th call. Then a second child opens the index as a reader and as the next writer. One line of
JSON per crash says what was wrong. `PROTOCOL` is `correct`, or the name of one of the deliberately broken
ones that show that the harness would notice; those end with the first problem.

Children are forked from this process, which imports FAISS but never runs it: forks after OpenMP can hang.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import traceback
from hashlib import sha256
from pathlib import Path

import faiss  # noqa: F401 - imported before forking, which saves its start-up in every child

from likewise.embedder.hash_encoder import HashEncoder
from likewise.errors import IndexNotFound
from likewise.index import analyzer, catalogue, doctor, snapshot
from likewise.index.catalogue import Catalogue
from likewise.index.files import FileSystem
from likewise.index.lock import WriterLock
from likewise.index.records import Passage, Span
from likewise.index.rows import DeleteDocument, PassageRow, RenameDocument, WriteDocument
from likewise.index.snapshot import find_orphans, publish
from likewise.index.view import open_view

ENCODER = HashEncoder(dimension=16)
CRASHED, FINISHED = 9, 0


def document(key: str, texts: list[str]) -> WriteDocument:
    vectors = ENCODER.encode_passages(texts) if texts else []
    rows = [
        PassageRow(
            Passage(number, text, Span(0, len(text)), (1, 1)), sha256(text.encode()).digest(), vectors[number]
        )
        for number, text in enumerate(texts)
    ]
    return WriteDocument(key, key.encode(), 1, 1, "", passages=rows)


BATCHES = [
    [document("a", ["alpha one", "alpha two"]), document("b", ["beta 鑰匙"])],
    [document("a", ["alpha one", "alpha new"]), DeleteDocument("b"), document("c", ["gamma"])],
    [RenameDocument("a", "d", b"d", 1, 1), document("c", [])],
]
# The index before the first batch and after each of them.
STATES = [
    {},
    {"a": ["alpha one", "alpha two"], "b": ["beta 鑰匙"]},
    {"a": ["alpha one", "alpha new"], "c": ["gamma"]},
    {"d": ["alpha one", "alpha new"], "c": []},
]


class CrashingFiles(FileSystem):
    """Ends the process at the n-th call, and knows what a power failure would have taken.

    Modes: `before` the call (which is also after the one before it); `torn`: with half of a write done;
    `power`: before the call, and what was not synced is lost. Writes of a few bytes are not counted: FAISS
    makes many.
    """

    def __init__(self, crash_at: int, mode: str) -> None:
        self.calls = 0
        self.crash_at = crash_at
        self.mode = mode
        self.unsynced: dict[Path, int] = {}  # content beyond this size may be lost
        self.unsynced_names: list[tuple[Path, Path]] = []

    def step(self, action, torn=None):
        self.calls += 1
        if self.calls != self.crash_at:
            return action()
        if self.mode == "torn":
            if torn is None:
                return action()
            torn()
        elif self.mode == "power":
            self.lose_power()
        os._exit(CRASHED)

    def lose_power(self):
        for path, size in self.unsynced.items():
            os.truncate(path, size)
        for source, target in reversed(self.unsynced_names):
            os.rename(target, source)

    def create(self, path):
        file = self.step(lambda: super(CrashingFiles, self).create(path))
        self.unsynced[path] = 0
        return file

    def write(self, file, data):
        def torn():
            file.write(data[: len(data) // 2])
            file.flush()

        if len(data) <= 8:
            return super().write(file, data)
        return self.step(lambda: super(CrashingFiles, self).write(file, data), torn)

    def sync(self, file):
        self.step(lambda: super(CrashingFiles, self).sync(file))
        self.unsynced.pop(Path(file.name), None)

    def rename(self, source, target):
        self.step(lambda: super(CrashingFiles, self).rename(source, target))
        self.unsynced_names.append((source, target))
        if source in self.unsynced:
            self.unsynced[target] = self.unsynced.pop(source)

    def sync_folder(self, folder):
        self.step(lambda: super(CrashingFiles, self).sync_folder(folder))
        self.unsynced_names.clear()

    def unlink(self, path):
        self.step(lambda: super(CrashingFiles, self).unlink(path))

    def commit(self, connection):
        self.step(lambda: super(CrashingFiles, self).commit(connection))


class NoSync(CrashingFiles):
    """Broken: the content of a file is not waited for."""

    def sync(self, file):
        file.flush()


class NoFolderSync(CrashingFiles):
    """Broken: the name of a file is not waited for."""

    def sync_folder(self, folder):
        pass


def break_protocol(protocol: str) -> type[CrashingFiles]:
    """Patch the code that is tested into a broken version, and say which file system it runs on."""
    if protocol == "row first":
        # The snapshot is recorded before its file is there, and the file is written under its final name.
        record = Catalogue.record_snapshot
        pending = []

        def only_measure(store, folder, name, files):
            data = bytearray()
            store.write(lambda block: data.extend(block) or len(block))
            pending.append((store, folder / name, files))
            return len(data), sha256(data).hexdigest()

        def record_then_write(self, row, **options):
            recorded = record(self, row, **options)
            store, path, files = pending.pop()
            with files.create(path) as file:
                store.write(lambda block: files.write(file, block))
                files.sync(file)
            return recorded

        snapshot._write, Catalogue.record_snapshot = only_measure, record_then_write
    elif protocol == "split batch":
        apply = Catalogue.apply
        Catalogue.apply = lambda self, changes: [apply(self, [change]) for change in changes]
    elif protocol == "trim first":
        # The log is trimmed in a transaction of its own, before the snapshot is there.
        build = snapshot._build

        def trim_and_build(connection, *arguments):
            built = build(connection, *arguments)
            connection.execute("ROLLBACK")
            connection.execute("DELETE FROM oplog")
            connection.execute("BEGIN")
            return built

        snapshot._build = trim_and_build
    return {"no sync": NoSync, "no folder sync": NoFolderSync}.get(protocol, CrashingFiles)


def work(folder: Path, files: FileSystem, acknowledge) -> None:
    """What the writer does."""
    with WriterLock(folder), Catalogue.open(folder, mode="create", files=files) as index:
        setting = {"name": ENCODER.name, "fingerprint": ENCODER.fingerprint, "dimension": 16}
        index.set_meta({"encoder": setting})
        for number, changes in enumerate(BATCHES, start=1):
            index.apply(changes)
            acknowledge(number)
            publish(index, folder, files=files)


def observed(folder: Path) -> tuple[dict[str, list[str]], list[str]]:
    """What the index says its documents are, and what is inconsistent about that."""
    problems = []
    with open_view(folder) as view:
        problems += view.notices
        state = {
            row.key: [one.passage.text for one in view.document_passages(row.key)] for row in view.documents()
        }
        texts = sorted(text for passages in state.values() for text in passages)
        if view.fingerprint:
            ranking = view.dense(ENCODER.encode_queries(["alpha"])[0], 50)
            found = sorted(one.passage.text for one in view.passages(ranking.ids).values())
            if found != texts:
                problems.append(f"dense search finds {found}, there are {texts}")
        for word in ("alpha", "beta", "gamma", "鑰匙", "two", "new"):
            ids = view.lexical(analyzer.analyze_query(word), 50).ids
            found = sorted(one.passage.text for one in view.passages(ids).values())
            if found != [text for text in texts if word in text]:
                problems.append(f"lexical search for {word} finds {found}")
    return state, problems


def verify(folder: Path, acknowledged: int) -> list[str]:
    """What is wrong with an index that a writer left behind."""
    problems = []
    if (folder / catalogue.CATALOGUE_FILE).exists():
        try:
            state, problems = observed(folder)
        except IndexNotFound:
            state, problems = {}, []
        # The next batch may have been committed without the news having got out.
        if state not in STATES[acknowledged : acknowledged + 2]:
            problems.append(f"after {acknowledged} acknowledged batches the index holds {state}")
    elif acknowledged:
        problems.append("the catalogue is gone")
    with WriterLock(folder), Catalogue.open(folder, mode="create") as index:
        setting = {"name": ENCODER.name, "fingerprint": ENCODER.fingerprint, "dimension": 16}
        index.set_meta({"encoder": setting})
        index.apply([*(DeleteDocument(key) for key in "abcd"), document("z", ["zeta"])])
        publish(index, folder)
        orphans = find_orphans(folder, (row.file for row in index.snapshots()))
        problems += [f"{name} was left behind" for name in orphans]
    state, more = observed(folder)
    problems += more
    if state != {"z": ["zeta"]}:
        problems.append(f"the next writer's index holds {state}")
    problems += [found.message for found in doctor.check(folder) if found.severity in ("warning", "error")]
    return problems


def in_child(action) -> tuple[int, str]:
    """Run in a forked process; returns its exit status and what it returned, or its traceback."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            os.write(writing, action(writing).encode())
            status = FINISHED
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        output = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), output


def crash(folder: Path, kind: type[CrashingFiles], crash_at: int, mode: str) -> dict[str, object]:
    folder.mkdir()
    files = kind(crash_at, mode)

    def run(pipe):
        work(folder / "index", files, lambda number: os.write(pipe, b"+"))
        return f" {files.calls}"

    status, output = in_child(run)
    # In the mode `torn` a crash point may be no write: then the work is done, but there are more to come.
    acknowledged, calls = output.count("+"), int(output.strip("+ ") or 0) if status == FINISHED else crash_at
    problems = [output] if status not in (CRASHED, FINISHED) else []
    checked, result = in_child(lambda _: json.dumps(verify(folder / "index", acknowledged)))
    problems += json.loads(result) if checked == 0 else [result]
    return {
        "at": crash_at,
        "mode": mode,
        "finished": status == FINISHED and files.crash_at > calls,
        "problems": problems,
    }


def main() -> None:
    folder, protocol, modes = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    analyzer.analyze("load the stemmer")
    kind = break_protocol(protocol)
    for mode in modes:
        for crash_at in range(1, 1000):
            place = folder / f"{mode}-{crash_at}"
            result = crash(place, kind, crash_at, mode)
            print(json.dumps(result, ensure_ascii=False), flush=True)
            if result["problems"] and protocol != "correct":
                return
            shutil.rmtree(place)
            if result["finished"]:
                break


if __name__ == "__main__":
    main()
