"""A yaya for tests of a plugin, without yaya.

    async with Harness(plugin, config={"units": "metric"}) as yaya:
        result = await yaya.call("forecast", place="Oslo")
        assert result["ok"], result

`Harness` speaks the protocol with a `Plugin` in this process, or with a program
(`Harness(["python3", "main.py"], cwd=folder)`), whose standard error is `stderr` afterwards. It
accepts everything that a plugin emits: `yaya plugin test` says what yaya refuses.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from typing import Any, Callable

from .connection import Connection
from .plugin import Plugin
from .types import YayaError, encode


class Harness:
    """A yaya for one plugin."""

    def __init__(
        self, plugin: Plugin | list[str], *, cwd: str | None = None, config: dict[str, Any] | None = None,
        providers: list[dict[str, Any]] | None = None, state_dir: str | None = None,
    ) -> None:
        self.config, self.providers = config or {}, providers
        self.manifest: dict[str, Any] = {}  # the result of initialize
        self.emitted: list[dict[str, Any]] = []  # params of emit, in their order
        self.logs: list[str] = []
        self.progress: list[dict[str, Any]] = []
        self.refused: set[str] = set()  # kinds that the plugin may not emit
        # The answers to requests of a skill, by kind: (kind of the answer, payload).
        self.answers: dict[str, Callable[[Any], tuple[str, Any]]] = {}
        self.stray: list[str] = []  # lines of the plugin that are not messages
        self.stderr = ""
        self.returncode: int | None = None
        self._plugin, self._cwd = plugin, cwd
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self.state_dir = state_dir or ""  # a temporary folder if it is empty
        self._last = 0
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._connection: Connection | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._readers: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Harness:
        loop = asyncio.get_running_loop()
        if not self.state_dir:
            self._temporary = tempfile.TemporaryDirectory()
            self.state_dir = self._temporary.name
        if isinstance(self._plugin, Plugin):
            self._connection = Connection(self._plugin, lambda line: _ignore(loop.call_soon_threadsafe(self._receive, line)))
        else:
            pipe = asyncio.subprocess.PIPE
            env = {**os.environ, "HOME": self.state_dir}
            self._process = await asyncio.create_subprocess_exec(*self._plugin, cwd=self._cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe, limit=16 << 20)
            self._readers = [loop.create_task(self._lines()), loop.create_task(self._said())]
        try:
            self.manifest = await self.ask("initialize", {"abi": 1, "kernel": {"version": "test", "protocol": "v0"}, **self._settings(), "state_dir": self.state_dir})
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            if self._connection is not None or self._process is not None and self._process.returncode is None:
                await self.ask("shutdown", {})
        finally:
            await self._end()

    async def _end(self) -> None:
        if self._connection is not None:
            await self._connection.close()
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            try:
                self.returncode = await asyncio.wait_for(self._process.wait(), 5)
            except asyncio.TimeoutError:
                self._process.kill()
                self.returncode = await self._process.wait()
            await asyncio.gather(*self._readers)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._temporary is not None:
            self._temporary.cleanup()

    # As yaya.

    async def ask(self, method: str, params: dict[str, Any], timeout: float = 10) -> Any:
        """Sends a request and returns its result. YayaError is the plugin's error."""
        self._last += 1
        key = self._last
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[key] = answer
        self.write(encode({"jsonrpc": "2.0", "id": key, "method": method, "params": params}))
        try:
            return await asyncio.wait_for(answer, timeout)
        except (asyncio.CancelledError, asyncio.TimeoutError):
            self.write(encode({"jsonrpc": "2.0", "method": "cancel", "params": {"id": key}}))
            raise
        finally:
            del self._pending[key]

    async def call(self, tool: str, /, *, session_id: str = "s1", timeout: float = 10, **args: Any) -> dict[str, Any]:
        """Calls a tool and returns the result as the protocol has it."""
        params = {"call_id": "call_1", "name": tool, "args": args, "session_id": session_id, "turn_id": "t1", "deadline_ms": int(timeout * 1000)}
        result: dict[str, Any] = await self.ask("tool.call", params, timeout + 1)
        return result

    async def event(self, kind: str, payload: Any, *, session_id: str = "s1", timeout: float = 10) -> str:
        """Delivers an event, waits until it is handled, and returns its id."""
        key = f"e{self._last + 1}"
        event = {"id": key, "kind": kind, "session_id": session_id, "ts": time.time(), "source": "test", "payload": payload}
        await self.ask("event", {"event": event, "deadline_ms": int(timeout * 1000)}, timeout + 1)
        return key

    async def guard_tool(self, tool: str, args: dict[str, Any], *, kind: str = "exec", session_id: str = "s1", timeout: float = 10, **more: str) -> dict[str, Any]:
        """Asks the guard of calls about one, and returns its answer as the protocol has it."""
        call = {"call_id": "call_1", "name": tool, "args": args, "kind": kind, "origin": "loop", "principal": "agent:react", **more}
        result: dict[str, Any] = await self.ask("guard", {"point": "pre_tool", "session_id": session_id, "call": call, "deadline_ms": int(timeout * 1000)}, timeout + 1)
        return result

    async def guard_prompt(self, text: str, *, session_id: str = "s1", timeout: float = 10) -> dict[str, Any]:
        """Asks the guard of messages about one, and returns its answer."""
        params = {"point": "prompt", "session_id": session_id, "prompt": text, "deadline_ms": int(timeout * 1000)}
        result: dict[str, Any] = await self.ask("guard", params, timeout + 1)
        return result

    async def next(self, kind: str, timeout: float = 10) -> Any:
        """Returns the payload of the first event of a kind that the plugin has emitted, waits
        for it, and forgets it."""
        return await asyncio.wait_for(self._next(kind), timeout)

    async def _next(self, kind: str) -> Any:
        async with self._changed:
            while True:
                for i, emitted in enumerate(self.emitted):
                    if emitted["kind"] == kind:
                        return self.emitted.pop(i)["payload"]
                await self._changed.wait()

    def write(self, line: bytes) -> None:
        """Sends a line to the plugin."""
        if self._connection is not None:
            self._connection.receive(line)
        elif self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(line)

    def _settings(self) -> dict[str, Any]:
        out: dict[str, Any] = {"config": self.config}
        if self.providers is not None:
            out["providers"] = self.providers
        return out

    # Messages of the plugin.

    async def _lines(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        async for line in self._process.stdout:
            self._receive(line)
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(ConnectionError(f"the program has ended; it last said: {self.stderr[-500:]}"))

    async def _said(self) -> None:
        assert self._process is not None and self._process.stderr is not None
        async for line in self._process.stderr:
            self.stderr += line.decode("utf-8", "replace")

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            self.stray.append(line.decode("utf-8", "replace"))
            return
        if "method" not in message:
            answer = self._pending.get(message.get("id"))
            if answer is not None and not answer.done():
                if "error" in message:
                    answer.set_exception(YayaError(message["error"]["code"], message["error"]["message"]))
                else:
                    answer.set_result(message["result"])
            return
        task = asyncio.get_running_loop().create_task(self._take(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take(self, message: dict[str, Any]) -> None:
        method, params, key = message["method"], message.get("params", {}), message.get("id")
        result: Any = {}
        error: dict[str, Any] | None = None
        if method == "emit" and params["kind"] in self.refused:
            error = {"code": -32001, "message": f"the plugin may not emit {params['kind']}"}
        elif method == "emit":
            async with self._changed:
                self.emitted.append(params)
                self._changed.notify_all()
        elif method == "log":
            self.logs.append(params["message"])
        elif method == "progress":
            self.progress.append(params)
        elif method == "config":
            result = self._settings()
        elif method == "request" and params["kind"] in self.answers:
            kind, payload = self.answers[params["kind"]](params["payload"])
            result = {"event": {"id": "a1", "kind": kind, "session_id": params["session_id"], "ts": time.time(), "source": "test", "payload": payload}}
        elif method == "request":
            error = {"code": -32004, "message": f"the test has no answer to {params['kind']}"}
        else:
            error = {"code": -32601, "message": f"unknown method {method}"}
        if key is not None:
            self.write(encode({"jsonrpc": "2.0", "id": key, **({"error": error} if error else {"result": result})}))
        elif error is not None:
            print(f"{method} was refused: {error['message']}", file=sys.stderr)


def _ignore(_: object) -> None:
    pass
