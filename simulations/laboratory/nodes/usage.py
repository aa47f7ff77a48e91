"""CPU time and memory of processes and of the processes that they have started, read from Linux's /proc."""

import os
from collections.abc import Iterable
from pathlib import Path


def stat(process: int) -> list[str]:
    """Return the fields of /proc/PID/stat, starting with the state; zeros if there is no process with this ID."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return ["0"] * 50


def cpu(processes: Iterable[int]) -> float:
    """Return the total CPU time, in seconds, that these processes have used so far."""
    fields = (stat(process) for process in processes)
    return sum(int(process[11]) + int(process[12]) for process in fields) / os.sysconf("SC_CLK_TCK")


def descendants(parents: Iterable[int]) -> set[int]:
    """Return the IDs of the processes that these processes have started, directly or indirectly."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        children.setdefault(int(stat(int(entry.name))[1]), []).append(int(entry.name))
    started, left = set(), [*parents]
    while left:
        started.update(new := children.get(left.pop(), []))
        left += new
    return started


def proportional_set(processes: Iterable[int]) -> int:
    """Return the memory of these processes in bytes; shared memory is divided among the processes sharing it (PSS)."""
    return _memory(processes, "Pss:")


def resident_set(processes: Iterable[int]) -> int:
    """Return the memory of these processes in bytes; shared memory counts fully for each process (RSS)."""
    return _memory(processes, "Rss:")


def _memory(processes: Iterable[int], kind: str) -> int:
    return sum(
        1024 * int(line.split()[1])
        for process in processes
        for line in Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
        if line.startswith(kind)
    )
