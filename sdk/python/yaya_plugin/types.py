"""The values that a plugin gets and returns."""

from __future__ import annotations

import dataclasses
import enum
import json
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .plugin import Plugin

# Codes of errors of yaya.
REFUSED = -32001  # the plugin may not do this
BUSY = -32002  # a limit is reached, try later
NO_ANSWER = -32003  # no answer to a request in time
FAILED = -32004  # whoever was asked has failed, or yaya stops


class YayaError(Exception):
    """yaya has refused or failed what the plugin asked for; code says why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ConnectionClosed(Exception):
    """yaya no longer listens."""


class ToolError(Exception):
    """A failed tool call: the model reads the message.

    kind is tool, validation, not_found, rejected, timeout, unavailable or internal; detail is
    JSON for programs.
    """

    def __init__(self, message: str, kind: str = "tool", detail: Any = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.detail = detail


@dataclasses.dataclass
class Result:
    """The result of a tool call. `text`, `markdown` and `json` make the usual ones."""

    ok: bool = True
    display: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    structured: Any = None
    brief: str = ""  # one line of at most 80 characters; yaya makes one if it is empty
    error_kind: str = ""
    detail: Any = None

    @classmethod
    def text(cls, text: str) -> Result:
        return cls(display=[{"kind": "text", "text": text}])

    @classmethod
    def markdown(cls, markdown: str) -> Result:
        return cls(display=[{"kind": "markdown", "markdown": markdown}])

    @classmethod
    def json(cls, value: Any) -> Result:
        return cls(display=[{"kind": "json", "data": value}], structured=value)

    @classmethod
    def fail(cls, text: str, kind: str = "tool", detail: Any = None) -> Result:
        return cls(ok=False, display=[{"kind": "text", "text": text}], error_kind=kind, detail=detail)

    def message(self) -> dict[str, Any]:
        """Returns the result as the protocol has it."""
        out: dict[str, Any] = {"ok": self.ok, "display": self.display}
        for name in ("structured", "brief", "error_kind", "detail"):
            value = getattr(self, name)
            if value is not None and value != "":
                out[name] = value
        return out


def result_of(value: Any) -> Result:
    """Makes a result of what a tool returns: a text, None, or a value for JSON."""
    if isinstance(value, Result):
        return value
    if value is None:
        return Result()
    if isinstance(value, str):
        return Result.text(value)
    return Result.json(value)


def _plain(value: Any) -> Any:
    """Returns the JSON of a value that json does not know."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, (set, frozenset)):
        return list(value)
    raise TypeError(f"a {type(value).__name__} is not JSON")


def encode(message: dict[str, Any]) -> bytes:
    """Returns a message as a line. A value that is not JSON raises TypeError or ValueError."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain)
    return text.encode("utf-8", "replace") + b"\n"


@dataclasses.dataclass(frozen=True)
class Event:
    """An event; docs/events has the payload of each kind."""

    id: str
    kind: str
    session_id: str
    ts: float  # unix seconds
    source: str
    payload: Any
    plugin: Plugin = dataclasses.field(repr=False, compare=False)

    async def reply(self, kind: str, payload: dict[str, Any]) -> None:
        """Emits an answer to this event."""
        await self.plugin.emit(kind, self.session_id, {**payload, "request_id": self.id})


class Call:
    """One call of a tool, for a function with a parameter of this type."""

    def __init__(self, plugin: Plugin, request: int, params: dict[str, Any]) -> None:
        self.plugin = plugin
        self.id: str = params.get("call_id", "")
        self.session_id: str = params.get("session_id", "")
        self.turn_id: str = params.get("turn_id", "")  # empty if no agent of yaya's calls
        self._request = request
        self._ended = threading.Event()
        self._until: float = time.monotonic() + params.get("deadline_ms", 0) / 1000

    @property
    def remaining(self) -> float:
        """Seconds until yaya gives up."""
        return max(self._until - time.monotonic(), 0)

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits any longer. A function in a thread checks this; an async one is
        cancelled."""
        return self._ended.is_set()

    def end(self) -> None:
        """Marks the call as ended."""
        self._ended.set()

    def progress(self, progress: float, total: float | None = None, message: str = "") -> None:
        """Reports how far the call is."""
        params: dict[str, Any] = {"id": self._request, "progress": progress}
        if total is not None:
            params["total"] = total
        if message:
            params["message"] = message
        self.plugin.notify("progress", params)


@dataclasses.dataclass(frozen=True)
class GuardedCall:
    """A call of a tool that a guard is asked about."""

    call_id: str
    name: str
    args: dict[str, Any]
    kind: str = "exec"  # read, write, exec or network
    server: str = ""  # the MCP server whose tool it is
    origin: str = ""  # loop (an agent), mcp, cli or api
    principal: str = ""  # the caller
    session_id: str = ""
    turn_id: str = ""  # empty if no agent of yaya's calls
    shown: Any = None  # the call as a person sees it who is asked, if that is not args

    @classmethod
    def of(cls, params: dict[str, Any]) -> GuardedCall:
        call = params.get("call") or {}
        known = {f.name for f in dataclasses.fields(cls)}
        return cls(**{**{k: v for k, v in call.items() if k in known}, "session_id": params.get("session_id", "")})


@dataclasses.dataclass(frozen=True)
class GuardedPrompt:
    """The messages of the user since the model was last asked."""

    text: str
    session_id: str = ""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The answer of a guard: `allow`, `ask` or `deny` makes one."""

    decision: str
    reason: str = ""  # for the model and the user

    @classmethod
    def allow(cls) -> Verdict:
        """No objection. It lifts nothing: rules and people decide."""
        return cls("allow")

    @classmethod
    def ask(cls, reason: str) -> Verdict:
        """A person has to approve the call. A message is then denied."""
        return cls("ask", reason)

    @classmethod
    def deny(cls, reason: str) -> Verdict:
        """The call does not run, or the model does not get the message."""
        return cls("deny", reason)

    def message(self) -> dict[str, Any]:
        """Returns the verdict as the protocol has it."""
        return {"decision": self.decision, **({"reason": self.reason} if self.reason else {})}


@dataclasses.dataclass(frozen=True)
class Check:
    """One part of a health report."""

    name: str
    status: str  # ok, degraded or failed
    message: str = ""


@dataclasses.dataclass(frozen=True)
class Health:
    """How a plugin is."""

    status: str = "ok"  # ok, degraded or failed
    summary: str = ""
    details: list[Check] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Instance:
    """A configured instance of a model provider."""

    id: str
    label: str
    config: dict[str, Any]
