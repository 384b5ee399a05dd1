"""What a process's memory came to."""

from pathlib import Path

MIB = 2**20


def memory_mib(field: str) -> float:
    """A memory field of this process, such as VmRSS (now) or VmHWM (peak)."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / MIB
    raise SystemExit(f"/proc/self/status has no {field}; this benchmark needs Linux.")
