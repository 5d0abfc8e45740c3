"""A plugin as a program: standard streams, and its end."""

from __future__ import annotations

import asyncio
import os
import pathlib
import signal
import sys
import tempfile
import unittest

from yaya_plugin.testing import Harness

SDK = str(pathlib.Path(__file__).resolve().parent.parent)

PROGRAM = '''
import sys; sys.path.insert(0, {sdk!r})
import asyncio, os, subprocess, threading, time
from yaya_plugin import Plugin
plugin = Plugin("subject", "1.0.0", "tool")

@plugin.tool(kind="read")
def loud() -> str:
    "Writes to standard output in every way."
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["echo", "echoed"], check=True)
    return "read " + repr(sys.stdin.read())

@plugin.tool(kind="read")
def many(count: int) -> str:
    "Emits from threads."
    def emit(n):
        for i in range(count):
            plugin.send("x.subject.n", "s1", {{"n": n, "i": i, "pad": "x" * 5000}})
    threads = [threading.Thread(target=emit, args=(n,)) for n in range(4)]
    [t.start() for t in threads]; [t.join() for t in threads]
    return "done"

@plugin.tool(kind="read")
def blocks() -> str:
    "Does not return."
    time.sleep(600)
    return ""

@plugin.tool(kind="read")
async def awaits() -> str:
    "Waits for a thread."
    await asyncio.to_thread(time.sleep, 600)
    return ""

@plugin.tool(kind="read")
async def stubborn() -> str:
    "Ignores that it is cancelled."
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            print("ignored", file=sys.stderr, flush=True)

plugin.on_shutdown(lambda: print("saved"))
plugin.run()
print("after run")
'''


class TestProgram(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        pathlib.Path(folder.name, "main.py").write_text(PROGRAM.format(sdk=SDK))
        self.harness = Harness([sys.executable, "main.py"], cwd=folder.name)

    async def test_standard_output_is_the_protocols(self) -> None:
        async with self.harness as yaya:
            self.assertEqual((await yaya.call("loud"))["display"][0]["text"], "read ''")
        self.assertEqual(yaya.stray, [])
        self.assertEqual(yaya.returncode, 0)
        for said in ("printed", "written", "echoed", "saved", "after run"):
            self.assertIn(said, yaya.stderr)

    async def test_lines_of_threads_stay_whole(self) -> None:
        async with self.harness as yaya:
            await yaya.call("many", count=200)
            for n in range(4):
                order = [e["payload"]["i"] for e in yaya.emitted if e["payload"]["n"] == n]
                self.assertEqual(order, list(range(200)))
        self.assertEqual(yaya.stray, [])

    async def test_it_ends_with_its_input(self) -> None:
        for tool in ("blocks", "awaits", "stubborn"):
            with self.subTest(tool=tool):
                self.setUp()
                async with self.harness as yaya:
                    process = yaya._process
                    assert process is not None and process.stdin is not None
                    running = asyncio.create_task(yaya.call(tool, timeout=30))
                    await yaya.call("loud")  # the other call runs
                    process.stdin.close()
                    await asyncio.wait_for(process.wait(), 10)
                    with self.assertRaises((Exception, asyncio.CancelledError)):
                        await running
                self.assertIn("saved", yaya.stderr)

    async def test_an_interrupt_ends_it(self) -> None:
        async with self.harness as yaya:
            process = yaya._process
            assert process is not None
            os.kill(process.pid, signal.SIGINT)
            self.assertEqual(await asyncio.wait_for(process.wait(), 10), 130)
        self.assertNotIn("Traceback", yaya.stderr)


if __name__ == "__main__":
    unittest.main()
