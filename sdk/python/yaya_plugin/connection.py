"""The protocol: messages in both directions, and the requests that run."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import traceback
from typing import TYPE_CHECKING, Any, Callable, Coroutine

from .types import Call, ConnectionClosed, GuardedCall, GuardedPrompt, Result, ToolError, Verdict, YayaError, encode, result_of

if TYPE_CHECKING:
    from .plugin import Plugin

ABI = 1
MAX_LINE = 8 << 20  # bytes of a line that yaya reads

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
HANDLER_FAILED = -32000  # an exception of the plugin's own

PATIENCE = 1.0  # seconds for cancelled tasks to end


class Connection:
    """A connection to yaya. Its methods belong to the thread of the event loop, except `send`."""

    def __init__(self, plugin: Plugin, write: Callable[[bytes], None]) -> None:
        self.plugin = plugin
        self.ended = asyncio.Event()  # set when yaya has asked the plugin to end, or has gone
        self._write = write
        self._last = 0
        self._pending: dict[str, asyncio.Future[Any]] = {}
        self._running: dict[Any, asyncio.Task[Any]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._greeted = self._stopped = self._closed = False
        plugin.connection = self

    def send(self, line: bytes) -> None:
        """Writes a line of encode(). ConnectionClosed says that yaya has gone."""
        if len(line) > MAX_LINE:
            raise ValueError(f"a message of {len(line) >> 20} MiB is more than the {MAX_LINE >> 20} MiB that yaya reads")
        try:
            self._write(line)
        except BrokenPipeError as err:
            raise ConnectionClosed("yaya no longer reads") from err

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        """Sends a request and waits for its answer."""
        if self._closed:
            raise ConnectionClosed("yaya has ended the connection")
        self._last += 1
        key = f"p{self._last}"
        line = encode({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[key] = answer
        try:
            self.send(line)
            return await answer
        finally:
            del self._pending[key]

    def begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Starts a task that ends with the connection."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def receive(self, line: bytes) -> None:
        """Handles a line of yaya's."""
        try:
            message = json.loads(line)
        except ValueError as err:
            self._answer(None, error=(PARSE_ERROR, f"not JSON: {err}"))
            return
        if not isinstance(message, dict):
            self._answer(None, error=(INVALID_REQUEST, "not a message: a batch, or not an object"))
            return
        method, key = message.get("method"), message.get("id")
        if method is None:
            self._answered(key, message)
        elif key is None:
            if method == "cancel":
                task = self._running.get((message.get("params") or {}).get("id"))
                if task is not None:
                    task.cancel()
        else:
            task = self.begin(self._serve(key, method, message.get("params") or {}))
            self._running[key] = task
            task.add_done_callback(lambda _: self._running.pop(key, None))

    def _answered(self, key: Any, message: dict[str, Any]) -> None:
        answer = self._pending.get(key) if isinstance(key, str) else None
        if answer is None or answer.done():
            return
        error = message.get("error")
        if error is None:
            answer.set_result(message.get("result"))
        else:
            answer.set_exception(YayaError(error.get("code", INTERNAL_ERROR), error.get("message", "")))

    def _answer(self, key: Any, result: Any = None, error: tuple[int, str] | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": key}
        if error is None:
            message["result"] = result
        else:
            message["error"] = {"code": error[0], "message": error[1]}
        self.send(encode(message))

    async def _serve(self, key: Any, method: str, params: dict[str, Any]) -> None:
        try:
            try:
                self._answer(key, await self._handle(key, method, params))
            except asyncio.CancelledError:
                self._answer(key, error=(HANDLER_FAILED, "cancelled"))
            except YayaError as err:
                self._answer(key, error=(err.code, str(err)))
            except ConnectionClosed:
                raise
            except Exception as err:
                traceback.print_exc()
                self._answer(key, error=(HANDLER_FAILED, described(err)))
        except ConnectionClosed:
            self.ended.set()
        if method == "shutdown":
            self.ended.set()

    async def _handle(self, key: Any, method: str, params: dict[str, Any]) -> Any:
        if method == "initialize":
            return await self._initialize(params)
        if not self._greeted:
            raise YayaError(INVALID_REQUEST, f"{method} comes before initialize")
        if method == "event":
            return await self._event(params)
        if method == "tool.call":
            return (await self._tool(key, params)).message()
        if method == "guard" and self.plugin.guards:
            return (await self._guard(params)).message()
        if method == "health" and self.plugin.checked is not None:
            return dataclasses.asdict(await self.plugin.check())
        if method == "shutdown":
            await self.stop()
            return {}
        raise YayaError(UNKNOWN_METHOD, f"unknown method {method}")

    async def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        plugin = self.plugin
        if params.get("abi", 0) < ABI:
            raise YayaError(INVALID_PARAMS, f"yaya speaks version {params.get('abi')} of the plugin protocol, and this plugin needs {ABI}")
        kernel = params.get("kernel") or {}
        plugin.kernel_version, plugin.protocol = kernel.get("version", ""), kernel.get("protocol", "")
        plugin.state_dir = params.get("state_dir", "")
        plugin.take(params)
        if plugin.started is not None:
            await plugin.invoke(plugin.started)
        self._greeted = True
        out: dict[str, Any] = {"abi": ABI, "name": plugin.name, "version": plugin.version, "category": plugin.category}
        if plugin.tools:
            out["tools"] = [tool.message() for tool in plugin.tools.values()]
        if plugin.guards:
            out["guards"] = list(plugin.guards)
        return out

    async def _event(self, params: dict[str, Any]) -> dict[str, Any]:
        event = self.plugin.event_of(params["event"])
        handler = self.plugin.handlers.get(event.kind)
        if handler is not None:
            await within(params, self.plugin.invoke(handler, event))
        return {}

    async def _tool(self, key: Any, params: dict[str, Any]) -> Result:
        tool = self.plugin.tools.get(params.get("name", ""))
        if tool is None:
            raise YayaError(INVALID_PARAMS, f"there is no tool {params.get('name')}")
        call = Call(self.plugin, key, params)
        try:
            return result_of(await within(params, tool.run(call, params.get("args") or {})))
        except ToolError as err:
            return Result.fail(str(err), err.kind, err.detail)
        except asyncio.TimeoutError:
            return Result.fail(f"{tool.name} has not ended within its time", "timeout")
        except Exception as err:
            traceback.print_exc()
            return Result.fail(described(err), "internal")
        finally:
            call.end()

    async def _guard(self, params: dict[str, Any]) -> Verdict:
        guard = self.plugin.guards.get(params.get("point", ""))
        if guard is None:
            raise YayaError(INVALID_PARAMS, f"it does not guard {params.get('point')}")
        question: Any = GuardedPrompt(params.get("prompt", ""), params.get("session_id", ""))
        if params["point"] == "pre_tool":
            question = GuardedCall.of(params)
        verdict = await within(params, self.plugin.invoke(guard, question))
        if not isinstance(verdict, Verdict):
            raise TypeError(f"the guard of {params['point']} returned a {type(verdict).__name__}, not a Verdict")
        return verdict

    async def stop(self) -> None:
        """Lets the plugin save its state, once."""
        if self._stopped or not self._greeted:
            return
        self._stopped = True
        if self.plugin.stopped is not None:
            await self.plugin.invoke(self.plugin.stopped)

    async def close(self) -> bool:
        """Ends what runs. It reports whether all of it has ended, within a second."""
        self._closed = True
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(ConnectionClosed("yaya has ended the connection"))
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        self.plugin.connection = None
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)
        return all(task.done() for task in tasks)


async def within(params: dict[str, Any], work: Coroutine[Any, Any, Any]) -> Any:
    """Waits for work until the deadline of a request."""
    limit = params.get("deadline_ms", 0) / 1000
    return await asyncio.wait_for(work, limit if limit > 0 else None)


def described(err: BaseException) -> str:
    return f"{type(err).__name__}: {err}" if str(err) else type(err).__name__
