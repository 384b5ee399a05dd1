"""Kill a process at a chosen system call, to see what it leaves behind."""

import ctypes
import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial

_TRACEME, _SYSCALL, _SETOPTIONS = 0, 24, 0x4200
_EXIT_WITH_TRACER = 0x00100000

Announce = Callable[[], None]
Work = Callable[[Announce], None]
"""Does something in a process of its own; calls its argument when something has left."""


def _ptrace(request: int, pid: int, data: int = 0) -> bool:
    call = ctypes.CDLL(None, use_errno=True).ptrace
    call.restype = ctypes.c_long
    call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    return bool(call(request, pid, None, data) == 0)


def can_trace() -> bool:
    """Whether this machine lets a process stop its child at system calls."""
    killed, _ = killed_at_call(lambda announce: None, 1)
    return killed


def _start(work: Work, *, traced: bool) -> tuple[int, int]:
    receiver, sender = os.pipe()
    pid = os.fork()
    if pid == 0:
        # No handler and no cleanup of the parent's may run in the child.
        status = 1
        try:
            if traced:
                _ptrace(_TRACEME, 0)
                os.kill(os.getpid(), signal.SIGSTOP)
            work(partial(_announce, sender))
            status = 0
        finally:
            os._exit(status)
    os.close(sender)
    return pid, receiver


def _announce(sender: int) -> None:
    os.write(sender, b"x")


def _announced(receiver: int) -> int:
    """How often it said that something left, before it died."""
    count = 0
    while content := os.read(receiver, 4096):
        count += len(content)
    os.close(receiver)
    return count


def killed_at_call(work: Work, stop: int) -> tuple[bool, int]:
    """Kill at the given stop, two for each system call: before it and after it.

    Returns whether it was still at work then, and how often it announced.
    """
    pid, receiver = _start(work, traced=True)
    _, status = os.waitpid(pid, 0)
    stops = 0
    while os.WIFSTOPPED(status) and stops < stop:
        if stops == 0:
            _ptrace(_SETOPTIONS, pid, _EXIT_WITH_TRACER)
        if not _ptrace(_SYSCALL, pid):
            break
        _, status = os.waitpid(pid, 0)
        stops += 1
    alive = os.WIFSTOPPED(status)
    if alive:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return alive and stops == stop, _announced(receiver)


def killed_after(work: Work, seconds: float) -> int:
    """Kill after some time, wherever it is; returns how often it announced."""
    pid, receiver = _start(work, traced=False)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return _announced(receiver)


def moments(count: int, longest: float) -> list[float]:
    """Times to kill at, the same in every run."""
    draw = random.Random(7)  # noqa: S311  # repeatable
    return [draw.uniform(0, longest) for _ in range(count)]
