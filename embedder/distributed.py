"""Several processes that train one model together.

Each process takes its share of a step's micro-batches; gradients are *added up*, as every loss is already
divided by the counts of all processes together. So two processes compute what one computes with twice the
micro-batches, for every objective. Started by `torchrun` or `accelerate launch`, which both set the
environment variables read here. Single-process runs never touch torch.distributed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class World:
    """The processes of a run.

    Attributes:
        rank: Number of this process.
        size: Number of processes.
    """

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process writes the files and reports progress."""
        return self.rank == 0

    def add_counts(self, counts: Mapping[str, int], device: torch.device) -> dict[str, int]:
        """Sum of every process's counts; all must have the same names."""
        if self.size == 1:
            return dict(counts)
        names = sorted(counts)
        table = torch.tensor([counts[name] for name in names], dtype=torch.int64, device=device)
        torch.distributed.all_reduce(table)
        return dict(zip(names, table.tolist(), strict=True))

    def add_values(self, values: Mapping[str, float], device: torch.device) -> dict[str, float]:
        """Sum of every process's values; all must have the same names."""
        if self.size == 1:
            return dict(values)
        names = sorted(values)
        table = torch.tensor([values[name] for name in names], dtype=torch.float64, device=device)
        torch.distributed.all_reduce(table)
        return dict(zip(names, table.tolist(), strict=True))

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum every process's gradients, in one message per data type and device."""
        if self.size == 1:
            return
        parameters = list(parameters)
        # A head that no batch of the step needed has no gradient anywhere and must stay untouched, as in a
        # single process; where only some processes have one, the others take part with zeros.
        used = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.int32)
        used = used.to(parameters[0].device)
        torch.distributed.all_reduce(used)
        buckets: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
        for parameter, processes in zip(parameters, used.tolist(), strict=True):
            if processes:
                gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                parameter.grad = gradient
                buckets.setdefault((gradient.dtype, gradient.device), []).append(gradient)
        for gradients in buckets.values():
            flat = torch.cat([gradient.flatten() for gradient in gradients])
            torch.distributed.all_reduce(flat)
            parts = torch.split(flat, [gradient.numel() for gradient in gradients])
            for gradient, part in zip(gradients, parts, strict=True):
                gradient.copy_(part.view_as(gradient))

    def share_weights(self, model: nn.Module) -> None:
        """Give every process the first one's weights."""
        if self.size > 1:
            with torch.no_grad():
                for tensor in (*model.parameters(), *model.buffers()):
                    torch.distributed.broadcast(tensor, src=0)

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether the flag is set in any process: all must stop at the same step."""
        return bool(self.add_counts({"flag": int(flag)}, device)["flag"])

    def from_lead(self, value: float, device: torch.device) -> float:
        """The first process's value, for what each would measure differently, such as time."""
        if self.size == 1:
            return value
        table = torch.tensor([value], dtype=torch.float64, device=device)
        torch.distributed.broadcast(table, src=0)
        return float(table)

    def wait(self) -> None:
        """Wait for all processes."""
        if self.size > 1:
            torch.distributed.barrier()


@contextlib.contextmanager
def world() -> Iterator[World]:
    """Join the processes that a launcher started, and leave them at the end.

    Without a launcher this is a world of one. The caller may have joined already.

    Example:
        >>> with world() as alone:
        ...     alone
        World(rank=0, size=1)
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        yield World(torch.distributed.get_rank(), torch.distributed.get_world_size())
        return
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1:
        yield World()
        return
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    torch.distributed.init_process_group("nccl" if gpu else "gloo")
    try:
        yield World(torch.distributed.get_rank(), torch.distributed.get_world_size())
    finally:
        torch.distributed.destroy_process_group()
