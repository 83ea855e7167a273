"""Tokens per second of masked language modelling, against the Trainer of Hugging Face, and why.

A BERT of 6 layers, 384 wide, with the usual vocabulary of 30,522 tokens, on lines of real text from a heading
of two words to a paragraph of hundreds. Every side starts from the same weights and takes about the same
number of real tokens per step. Each runs in a process of its own; they take turns step by step, so that a
busy machine hurts all alike, and processor time counts, that of helping threads included.

The peers: `Trainer` + `DataCollatorForLanguageModeling` + `BertForMaskedLM` as the example script for masked
language modelling uses them line by line (fp32, padded to 128), and the same at its best (texts packed end to
end, bf16, fused optimiser, no dropout of attention weights, which would rule out fused attention).

Rows below `likewise` take one measure at a time away from it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _measure import table
from _texts import english_lines

LENGTH, LINES = 128, 8_000
PEERS = {
    "Trainer, as in the example": {"layout": "padded", "bf16": False},
    "  + padded to the batch only": {"layout": "batch", "bf16": False},
    "  + packed": {"layout": "packed", "bf16": False},
    "Trainer, at its best": {"layout": "packed", "bf16": True},
}
OURS = {
    "likewise": {},
    "  without bf16": {"precision": "float32"},
    "  without grouping by length": {"order": "packed"},
    "  without packed rows (padded)": {"packed": False},
    "  without cutting the last layer": {"keep": False},
    "  without the one-sweep loss": {"sweep": False},
    "  without masked positions only": {"masked_only": False},
    "  without the fused optimiser": {"fused": False},
}
EXAMPLE, BEST, LIKEWISE = "Trainer, as in the example", "Trainer, at its best", "likewise"


class Turns:
    """The side's end of taking turns: tells what a step cost, and waits to be let on."""

    def __init__(self) -> None:
        self.cpu, self.wall = time.process_time(), time.perf_counter()
        self.tokens = 0

    def step(self, loss: float) -> None:
        """Report the step that ended, wait for the next turn."""
        cpu, wall = time.process_time(), time.perf_counter()
        report = {"cpu": cpu - self.cpu, "wall": wall - self.wall, "tokens": self.tokens, "loss": loss}
        print(json.dumps(report), flush=True)
        if not sys.stdin.readline():
            os._exit(0)  # the other end is done with this side
        self.tokens, self.cpu, self.wall = 0, cpu, time.perf_counter()


def start_model() -> Any:
    """The weights that every side starts from."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    shape = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    return BertForMaskedLM(BertConfig(**shape))


def peer(args: argparse.Namespace, layout: str, bf16: bool) -> Any:
    """Train with `Trainer`; return its model."""
    import torch
    from transformers import DataCollatorForLanguageModeling, Trainer, TrainerCallback, TrainingArguments

    from likewise.embedder.starting_point import load_tokenizer

    tokenizer = load_tokenizer("all-MiniLM-L6-v2")
    tokenizer.model_max_length = 100_000  # no warning about lines that are cut below
    lines = some_lines("training")
    if layout == "packed":
        ids = [token for row in tokenizer(lines)["input_ids"] for token in row]
        rows = [{"input_ids": ids[at : at + LENGTH]} for at in range(0, len(ids) - LENGTH, LENGTH)]
    else:
        encoded = tokenizer(lines, truncation=True, max_length=LENGTH)
        rows = [{"input_ids": row} for row in encoded["input_ids"]]
    mean = sum(len(row["input_ids"]) for row in rows) / len(rows)
    padding = "max_length" if layout == "padded" else True
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    turns = Turns()

    def collate(examples: list[dict[str, list[int]]]) -> Mapping[str, Any]:
        turns.tokens += sum(len(example["input_ids"]) for example in examples)
        filled = tokenizer.pad(examples, padding=padding, max_length=LENGTH)
        whole = [{name: filled[name][at] for name in filled} for at in range(len(examples))]
        batch: Mapping[str, Any] = collator(whole)
        return batch

    class Report(TrainerCallback):
        def on_log(self, arguments: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if logs and "loss" in logs:
                turns.step(logs["loss"])

    model = start_model()
    if bf16:
        model.config.attention_probs_dropout_prob = 0.0
        for layer in model.bert.encoder.layer:
            layer.attention.self.dropout.p = 0.0
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=args.steps,
            per_device_train_batch_size=max(1, round(args.tokens / mean)),
            learning_rate=5e-4,
            warmup_steps=max(1, round(0.06 * args.steps)),
            weight_decay=0.01,
            max_grad_norm=1.0,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            bf16=bf16,
            optim="adamw_torch_fused" if bf16 else "adamw_torch",
            seed=0,
        )
        torch.set_num_threads(args.threads)
        # Its progress lines would mix with the reports.
        trainer = Trainer(model, arguments, collate, train_dataset=rows, callbacks=[Report()])
        trainer.train()
    return model


def ours(args: argparse.Namespace, **changes: Any) -> Any:
    """Train with likewise, perhaps without one of its measures; return the model as a Hugging Face one."""
    from dataclasses import replace

    import torch
    import torch.nn.functional as F

    from likewise.embedder import training_step
    from likewise.embedder.corpus_build import SourceText, build_corpus
    from likewise.embedder.events import Progress
    from likewise.embedder.hf_export import from_hugging_face, to_hugging_face
    from likewise.embedder.objectives import Loss, Metric, Term
    from likewise.embedder.objectives.mlm import MaskedLanguageModelling, masked_targets
    from likewise.embedder.packing import CorpusBatches
    from likewise.embedder.sequences import Frame
    from likewise.embedder.starting_point import load_tokenizer, masking_vocabulary
    from likewise.embedder.training import train
    from likewise.embedder.training_settings import TrainingSettings

    turns = Turns()
    torch.set_num_threads(args.threads)

    class Objective(MaskedLanguageModelling):
        """Masked language modelling with the measures that are left."""

        def prepare(self, examples: Any, *, packed: bool = True, **options: Any) -> Any:
            return super().prepare(examples, packed=changes.get("packed", True), **options)

        def loss(self, model: Any, batch: Any) -> Loss:
            turns.tokens += batch.tokens
            if changes.keys().isdisjoint({"keep", "sweep", "masked_only"}):
                return super().loss(model, batch)
            if "keep" in changes:
                return self.loss_from_hidden(model, model.hidden(batch), batch)
            positions, targets = masked_targets(batch)
            if "masked_only" in changes:
                labels = torch.full_like(batch.input_ids.flatten(), -100).index_copy(0, positions, targets)
                scores, targets = model.token_logits(model.hidden(batch)), labels
            else:
                scores = model.token_logits(model.hidden(batch, keep=positions))
            total = F.cross_entropy(scores.float(), targets, reduction="sum")
            right = (scores.detach().argmax(-1) == targets).sum()
            return Loss(
                (Term("mlm", total, len(positions)),), {"masked_accuracy": Metric(right, len(positions))}
            )

    if changes.get("fused") is False:
        plain = training_step.adamw

        def unfused(*arguments: Any, **options: Any) -> Any:
            fused = plain(*arguments, **options)
            groups = [
                {name: group[name] for name in ("params", "lr", "peak", "weight_decay")}
                for group in fused.param_groups
            ]
            return torch.optim.AdamW(groups, fused=False, foreach=False)

        training_step.adamw = unfused

    tokenizer = load_tokenizer("all-MiniLM-L6-v2")
    model = from_hugging_face(start_model())
    for module in model.modules():
        if hasattr(module, "qkv"):
            module.dropout = 0.0  # as every recipe has it
    lines = some_lines("training")
    with tempfile.TemporaryDirectory() as folder:
        corpus = build_corpus(
            (SourceText(line, [0]) for line in lines), tokenizer, Path(folder) / "corpus", held_out=0
        )
        batches = CorpusBatches(
            corpus,
            Frame.of(tokenizer),
            length=LENGTH,
            tokens_per_batch=args.tokens,
            order=changes.get("order", "bucketed"),
        )

        def listen(event: object) -> None:
            if isinstance(event, Progress):
                turns.step(event.metrics["loss"])

        objective = Objective(masking_vocabulary(tokenizer))
        objective = replace(objective, masking=replace(objective.masking, seed=0))
        train(
            model,
            objective,
            batches,
            TrainingSettings(
                steps=args.steps,
                learning_rate=5e-4,
                log_every=1,
                precision=changes.get("precision", args.precision),
                save_every=None,
            ),
            listeners=[listen],
        )
        del batches, corpus  # unmap the files before their folder goes
    return to_hugging_face(model)


def some_lines(part: str) -> list[str]:
    """A fixed random sample of the lines, so that no side spends long on tokenising."""
    lines = english_lines()
    order = np.random.default_rng(0).permutation(len(lines))
    chosen = order[:LINES] if part == "training" else order[LINES : LINES + 800]
    return [lines[at] for at in chosen]


def held_out_loss(model: Any) -> tuple[float, float, float]:
    """Loss and its 95% interval on the lines left out, with the same masks for every model."""
    from likewise.embedder.corpus_build import SourceText, build_corpus
    from likewise.embedder.hf_export import from_hugging_face
    from likewise.embedder.mlm_evaluation import evaluate_mlm
    from likewise.embedder.objectives.mlm import MaskedLanguageModelling
    from likewise.embedder.packing import CorpusBatches
    from likewise.embedder.sequences import Frame
    from likewise.embedder.starting_point import load_tokenizer, masking_vocabulary

    tokenizer = load_tokenizer("all-MiniLM-L6-v2")
    lines = some_lines("held out")
    with tempfile.TemporaryDirectory() as folder:
        corpus = build_corpus(
            (SourceText(line, [0]) for line in lines), tokenizer, Path(folder) / "corpus", held_out=0
        )
        batches = CorpusBatches(
            corpus, Frame.of(tokenizer), length=LENGTH, tokens_per_batch=1024, order="packed"
        )
        objective = MaskedLanguageModelling(masking_vocabulary(tokenizer))
        loss = evaluate_mlm(from_hugging_face(model), objective, batches, limit=20).loss
        del batches, corpus
    return loss.value, loss.low, loss.high


def side(args: argparse.Namespace) -> None:
    """The process of one side."""
    import warnings

    warnings.simplefilter("ignore")
    model = peer(args, **PEERS[args.side]) if args.side in PEERS else ours(args, **OURS[args.side])
    if args.held_out:
        print(json.dumps({"held_out": held_out_loss(model)}), flush=True)


class Side:
    """The other end of a process that takes turns."""

    def __init__(self, name: str, args: argparse.Namespace, steps: int, *, held_out: bool) -> None:
        command = [sys.executable, __file__, "--side", name, "--steps", str(steps)]
        command += [
            "--tokens",
            str(args.tokens),
            "--threads",
            str(args.threads),
            "--precision",
            args.precision,
        ]
        self.process = subprocess.Popen(
            command + (["--held-out"] if held_out else []),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(args.threads), "TOKENIZERS_PARALLELISM": "false"},
        )
        self.steps: list[dict[str, float]] = []

    def read(self) -> dict[str, Any]:
        """The next report of the process; other lines that libraries print are passed over."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith('{"'):
                report: dict[str, Any] = json.loads(line)
                return report
        sys.exit(f"a side ended early: {self.process.args}")

    def turn(self) -> None:
        """Let it take one step."""
        assert self.process.stdin is not None
        if self.steps:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        self.steps.append(self.read())

    def end(self) -> dict[str, Any]:
        """Let it finish; what it reports at its end."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.read()

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def take_turns(
    names: Sequence[str], args: argparse.Namespace, until: Callable[[int], bool]
) -> dict[str, Side]:
    """Run sides in alternation for as long as `until(rounds)` is false."""
    # The budget of steps only shapes the learning rate here; the first step of each is warm-up.
    sides = {name: Side(name, args, 1000, held_out=False) for name in names}
    rounds = 0
    while not until(rounds):
        for one in sides.values():
            one.turn()
        rounds += 1
    for one in sides.values():
        one.close()
    return sides


def speeds(one: Side) -> Iterator[float]:
    """Real tokens per second of processor time, of every step but the first."""
    return (step["tokens"] / step["cpu"] for step in one.steps[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=6, help="steps of each side that are timed")
    parser.add_argument("--minutes", type=float, help="stop timing after this long instead")
    parser.add_argument("--curve", type=int, default=0, help="compare losses over this many steps instead")
    parser.add_argument("--tokens", type=int, default=1536, help="real tokens per step, about")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--precision", default="bfloat16", help="of likewise: bfloat16, float32, or auto to measure"
    )
    parser.add_argument("--sides", choices=["all", "main", "peers", "likewise"], default="all")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--held-out", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        side(args)
        return
    if args.curve:
        compare_curves(args)
        return

    start = time.perf_counter()

    def enough(rounds: int) -> bool:
        if args.minutes is not None:
            return rounds > 2 and time.perf_counter() - start > 60 * args.minutes
        return rounds > args.steps

    main_sides = [EXAMPLE, BEST, LIKEWISE]
    names = {"all": [*PEERS, *OURS], "main": main_sides, "peers": [*PEERS], "likewise": [*OURS]}[args.sides]
    sides = take_turns(names, args, enough)
    medians = {name: statistics.median(speeds(one)) for name, one in sides.items()}
    bases = {"x example": EXAMPLE, "x best": BEST} if EXAMPLE in sides else {"x likewise": LIKEWISE}
    rows = []
    for name, one in sides.items():
        wall = statistics.median(step["tokens"] / step["wall"] for step in one.steps[1:])
        mean = statistics.mean(step["tokens"] for step in one.steps[1:])
        rows.append(
            [
                name,
                f"{mean:.0f}",
                f"{medians[name]:.0f}",
                f"{wall:.0f}",
                *(medians[name] / medians[base] for base in bases.values()),
            ]
        )
    timed = len(next(iter(sides.values())).steps) - 1
    table(
        f"MLM, 6 layers, 384 wide, vocabulary 30,522; median of {timed} steps; {args.threads} thread(s)",
        ["", "tokens/step", "tokens/cpu-s", "tokens/s", *bases],
        rows,
    )


def compare_curves(args: argparse.Namespace) -> None:
    """Loss of the fast sides over equally many equal steps, and on the same held-out lines at the end."""
    sides = {name: Side(name, args, args.curve, held_out=True) for name in (BEST, LIKEWISE)}
    for _ in range(args.curve):
        for one in sides.values():
            one.turn()
    ends = {name: one.end()["held_out"] for name, one in sides.items()}
    parts = 4
    size = args.curve // parts
    rows = []
    for name, one in sides.items():
        losses = [step["loss"] for step in one.steps]
        quarters = [statistics.mean(losses[at * size : (at + 1) * size]) for at in range(parts)]
        value, low, high = ends[name]
        rows.append([name, *quarters, f"{value:.3f} [{low:.3f}, {high:.3f}]"])
    table(
        f"Loss over {args.curve} steps of about {args.tokens} tokens from the same weights, by quarter",
        ["", "1st", "2nd", "3rd", "4th", "held out [95%]"],
        rows,
    )


if __name__ == "__main__":
    main()
