from typing import Annotated

from yaya_plugin import Plugin

plugin = Plugin("my-plugin", "0.1.0", "tool")


@plugin.tool(kind="read")
def my_plugin_greet(who: Annotated[str, "who to greet"]) -> str:
    """Greets somebody."""
    return f"Hello, {who}!"


plugin.run()
