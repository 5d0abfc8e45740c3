"""SDK for plugins of yaya in Python. It needs the standard library alone.

    from typing import Annotated
    from yaya_plugin import Plugin

    plugin = Plugin("weather", "1.0.0", "tool")

    @plugin.tool(kind="network")
    async def forecast(place: Annotated[str, "name of a town"]) -> str:
        "Forecasts the weather of a place."
        return f"Rain in {place}"

    plugin.run()

`Plugin.run` speaks the protocol of docs/PLUGINS.md over standard input and output, and returns
when yaya ends the plugin. What the program prints goes to standard error, which is yaya's log.

Events and calls overlap: each runs as a task of its own, which is cancelled when nobody waits
for it any longer. Events of one session come one after the other. A function that is not
`async` runs in a thread, so that it may block.
"""

from .plugin import Plugin
from .types import (
    BUSY,
    FAILED,
    NO_ANSWER,
    REFUSED,
    Call,
    Check,
    ConnectionClosed,
    Event,
    GuardedCall,
    GuardedPrompt,
    Health,
    Instance,
    Result,
    ToolError,
    Verdict,
    YayaError,
)

__all__ = [
    "BUSY",
    "FAILED",
    "NO_ANSWER",
    "REFUSED",
    "Call",
    "Check",
    "ConnectionClosed",
    "Event",
    "GuardedCall",
    "GuardedPrompt",
    "Health",
    "Instance",
    "Plugin",
    "Result",
    "ToolError",
    "Verdict",
    "YayaError",
]
