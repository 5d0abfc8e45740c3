"""The plugin: its tools and handlers, and its messages to yaya."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import sys
import traceback
from typing import Any, Callable, Coroutine, TypeVar

from .connection import Connection
from .schema import Signature
from .stdio import serve
from .types import Call, ConnectionClosed, Event, Health, Instance, ToolError, encode

CATEGORIES = ("tool", "llm-provider", "strategy", "memory", "adapter", "skill")
KINDS = ("read", "write", "exec", "network")

F = TypeVar("F", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Tool:
    """A tool of the plugin."""

    name: str
    description: str
    function: Callable[..., Any]
    signature: Signature | None  # None if the author has written the schema
    members: dict[str, Any]  # further members of its description

    def message(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, **self.members}

    async def run(self, call: Call, args: dict[str, Any]) -> Any:
        if self.signature is None:
            return await invoke(self.function, args, call)
        try:
            named = self.signature.arguments(args)
        except ValueError as err:
            raise ToolError(str(err), "validation") from err
        if self.signature.call:
            named[self.signature.call] = call
        return await invoke(self.function, **named)


async def invoke(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Calls a function: an async one as a part of this task, another one in a thread, which
    goes on when the task is cancelled."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **named)

    def run() -> Any:
        try:
            return function(*args, **named)
        except StopIteration as err:  # a future does not take it
            raise RuntimeError(f"StopIteration: {err}") from err

    result = await asyncio.to_thread(run)
    return await result if inspect.isawaitable(result) else result


class Plugin:
    """A plugin. Its name, version and category are as in its plugin.toml.

    Register tools and handlers with the decorators, then call `run`. Methods that are not
    async may be called from any thread.
    """

    def __init__(self, name: str, version: str, category: str) -> None:
        if category not in CATEGORIES:
            raise ValueError(f"category {category!r} is none of {', '.join(CATEGORIES)}")
        self.name, self.version, self.category = name, version, category
        self.config: dict[str, Any] = {}  # the settings, as of the start or of `refresh`
        self.providers: list[Instance] = []  # for an llm-provider
        self.state_dir = ""  # a folder that the plugin may write
        self.kernel_version = self.protocol = ""
        self.tools: dict[str, Tool] = {}
        self.handlers: dict[str, Callable[[Event], Any]] = {}
        self.guards: dict[str, Callable[[Any], Any]] = {}  # by point
        self.started: Callable[[], Any] | None = None
        self.checked: Callable[[], Any] | None = None
        self.stopped: Callable[[], Any] | None = None
        self.connection: Connection | None = None

    # Its parts.

    def tool(
        self, *, name: str = "", description: str = "", title: str = "", kind: str = "exec",
        requires_approval: bool = False, timeout: float = 0, input_schema: dict[str, Any] | None = None,
    ) -> Callable[[F], F]:
        """Makes a function a tool, under its name, described by its docstring.

        Its parameters are the arguments, and `Annotated[str, "…"]` describes one. A parameter of
        type `Call` gets the call. With input_schema, the function takes the arguments as a dict,
        and the call. timeout is in seconds; yaya's is 120.
        """
        if self.category != "tool":
            raise ValueError(f"a plugin of category {self.category} has no tools")
        if kind not in KINDS:
            raise ValueError(f"kind {kind!r} is none of {', '.join(KINDS)}")

        def register(function: F) -> F:
            named, about = name or function.__name__, description or inspect.getdoc(function) or ""
            if not about:
                raise ValueError(f"tool {named}: its function has no docstring, and it no description")
            if named in self.tools:
                raise ValueError(f"tool {named}: there are two of this name")
            members: dict[str, Any] = {"kind": kind}
            signature = None
            if input_schema is None:
                signature = Signature.of(function)
                members["input_schema"] = signature.input_schema
                if signature.output_schema:
                    members["output_schema"] = signature.output_schema
            else:
                members["input_schema"] = input_schema
            if title:
                members["title"] = title
            if requires_approval:
                members["requires_approval"] = True
            if timeout:
                members["timeout_ms"] = int(timeout * 1000)
            self.tools[named] = Tool(named, about, function, signature, members)
            return function

        return register

    def on(self, *kinds: str) -> Callable[[F], F]:
        """Makes a function the handler of events of these kinds, which plugin.toml subscribes to.

        An exception counts as a failure of the plugin. Long work belongs in `spawn`.
        """

        def register(function: F) -> F:
            for kind in kinds:
                if kind in self.handlers:
                    raise ValueError(f"event {kind}: there are two handlers")
                self.handlers[kind] = function
            return function

        return register

    def guard_tool(self, function: F) -> F:
        """Makes a function the guard of calls of tools, whoever makes them: it gets a
        GuardedCall before the tool runs, and returns a Verdict.

        permissions.guards of plugin.toml names "pre_tool". An exception, and everything but a
        Verdict, denies, and counts as a failure of the plugin.
        """
        return self._guard("pre_tool", function)

    def guard_prompt(self, function: F) -> F:
        """Makes a function the guard of the user's messages: it gets a GuardedPrompt before the
        model does, and returns a Verdict. permissions.guards of plugin.toml names "prompt"."""
        return self._guard("prompt", function)

    def _guard(self, point: str, function: F) -> F:
        if point in self.guards:
            raise ValueError(f"guard {point}: there are two")
        self.guards[point] = function
        return function

    def on_start(self, function: F) -> F:
        """Makes a function the one that runs before everything else, within ten seconds."""
        self.started = function
        return function

    def health(self, function: F) -> F:
        """Makes a function the one that reports how the plugin is: a Health, or a summary."""
        self.checked = function
        return function

    def on_shutdown(self, function: F) -> F:
        """Makes a function the one that saves the plugin's state, within a second."""
        self.stopped = function
        return function

    def run(self) -> None:
        """Serves yaya on standard input and output, and returns when yaya ends the plugin."""
        try:
            asyncio.run(serve(self))
        except KeyboardInterrupt:
            sys.exit(130)

    # Messages to yaya.

    async def emit(self, kind: str, session_id: str, payload: Any) -> None:
        """Publishes an event, and waits until yaya has accepted it. YayaError says why not."""
        await self._connected().call("emit", {"kind": kind, "session_id": session_id, "payload": payload})

    def send(self, kind: str, session_id: str, payload: Any) -> None:
        """Publishes an event without waiting: if yaya refuses it, its log says so."""
        self.notify("emit", {"kind": kind, "session_id": session_id, "payload": payload})

    async def request(self, kind: str, session_id: str, payload: Any, timeout: float = 60) -> Event:
        """Publishes a request to another plugin, and returns the event that answers. Only
        skills may. timeout is in seconds, at most ten minutes."""
        params = {"kind": kind, "session_id": session_id, "payload": payload, "timeout_ms": int(timeout * 1000)}
        return self.event_of((await self._connected().call("request", params))["event"])

    async def refresh(self) -> None:
        """Reads the present settings into `config` and `providers`."""
        self.take(await self._connected().call("config", {}))

    def log(self, message: str, level: str = "info") -> None:
        """Writes a line to yaya's log; level is debug, info, warn or error."""
        self.notify("log", {"level": level, "message": message})

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Runs work beside the messages, until it ends or the plugin does. Its exception goes
        to the log."""

        async def reported() -> Any:
            try:
                return await work
            except ConnectionClosed:
                return None
            except Exception as err:
                traceback.print_exc()
                self.log(f"{type(err).__name__}: {err}", "error")
                return None

        return self._connected().begin(reported())

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Sends a notification. Nobody misses one when yaya has gone."""
        line = encode({"jsonrpc": "2.0", "method": method, "params": params})
        connection = self.connection
        if connection is not None:
            with contextlib.suppress(ConnectionClosed):
                connection.send(line)

    def _connected(self) -> Connection:
        if self.connection is None:
            raise ConnectionClosed("the plugin does not run")
        return self.connection

    # For the connection.

    def take(self, settings: dict[str, Any]) -> None:
        self.config = settings.get("config") or {}
        self.providers = [Instance(p["id"], p.get("label", ""), p.get("config") or {}) for p in settings.get("providers") or []]

    def event_of(self, raw: dict[str, Any]) -> Event:
        return Event(raw["id"], raw["kind"], raw["session_id"], raw["ts"], raw["source"], raw["payload"], self)

    async def invoke(self, function: Callable[..., Any], *args: Any) -> Any:
        return await invoke(function, *args)

    async def check(self) -> Health:
        if self.checked is None:
            raise LookupError("no checks")
        told = await invoke(self.checked)
        return told if isinstance(told, Health) else Health("ok", str(told))


