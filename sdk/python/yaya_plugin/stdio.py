"""Standard input and output for the protocol alone."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any, Callable

from .connection import Connection

if TYPE_CHECKING:
    from .plugin import Plugin

MAX_LINE = 64 << 20  # bytes of a line from yaya
CHUNK = 256 << 10


def take_stdio() -> tuple[int, int]:
    """Returns standard input and output for the protocol, and leaves others in their place:
    print(), C code and child processes write to standard error, and read nothing."""
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return source, sink


def writer(fd: int) -> Callable[[bytes], None]:
    """Returns a function that writes lines whole, from any thread. It waits while yaya does
    not read, so that a plugin that emits faster than yaya takes is slowed down."""
    lock = threading.Lock()

    def write(line: bytes) -> None:
        with lock:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(fd, rest) :]

    return write


def read(fd: int, got: Callable[[bytes | None], None]) -> None:
    """Passes each line on, and None at the end."""
    kept = bytearray()
    while True:
        piece = os.read(fd, CHUNK)
        if not piece:
            break
        lines = piece.split(b"\n")
        for line in lines[:-1]:
            kept += line
            if kept.strip():
                got(bytes(kept))
            kept.clear()
        kept += lines[-1]
        if len(kept) > MAX_LINE:
            print(f"yaya sent a line of more than {MAX_LINE >> 20} MiB", file=sys.stderr)
            break
    got(None)


class Threads(concurrent.futures.ThreadPoolExecutor):
    """Runs each job in a thread of its own, which does not keep the program from ending."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **named))
            except BaseException as err:
                future.set_exception(err)

        threading.Thread(target=run, daemon=True, name=getattr(fn, "__name__", "job")).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leaves the threads to the end of the program."""


async def serve(plugin: Plugin) -> None:
    """Serves yaya until it ends the plugin."""
    source, sink = take_stdio()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(Threads())
    connection = Connection(plugin, writer(sink))

    def receive(line: bytes | None) -> None:
        if line is None:
            connection.ended.set()
        else:
            connection.receive(line)

    def forward(line: bytes | None) -> None:
        try:
            loop.call_soon_threadsafe(receive, line)
        except RuntimeError:  # the loop is closed: the plugin has ended
            pass

    threading.Thread(target=read, args=(source, forward), daemon=True, name="yaya").start()
    await connection.ended.wait()
    try:
        await connection.stop()
    except Exception:
        traceback.print_exc()
    if not await connection.close():  # something ignores that it is cancelled
        sys.stderr.flush()
        os._exit(1)
