"""A FastMCP server with one of everything: over stdio, or over HTTP at the port given."""

import sys
from dataclasses import dataclass

from fastmcp import Context, FastMCP
from fastmcp.utilities.types import Image

server = FastMCP("fast", instructions="Adds numbers, counts steps, asks for names.")


@dataclass
class Sum:
    sum: int


@dataclass
class Person:
    name: str


@server.tool(tags={"math"}, annotations={"readOnlyHint": True})
def add(a: int, b: int) -> Sum:
    """Adds two numbers"""
    return Sum(a + b)


@server.tool
async def steps(ctx: Context) -> str:
    """Reports three steps, in the log as well"""
    for i in range(3):
        await ctx.info(f"step {i + 1}")
        await ctx.report_progress(i + 1, 3)
    return "done"


@server.tool
async def ask(ctx: Context) -> str:
    """Asks for a name"""
    answer = await ctx.elicit("Who are you?", response_type=Person)
    return f"Hello {answer.data.name}" if answer.action == "accept" else answer.action


@server.tool
def dot() -> Image:
    """Draws a dot"""
    return Image(data=b"\x89PNG\r\n\x1a\n", format="png")


@server.resource("fast://greeting")
def greeting() -> str:
    """A greeting"""
    return "Hello"


@server.resource("fast://items/{id}")
def item(id: str) -> str:
    """An item"""
    return f"item {id}"


@server.prompt
def greet(name: str) -> str:
    """Greets"""
    return f"Greet {name}"


other = FastMCP("other")


@other.tool
def mounted() -> str:
    """Comes from a server that is mounted in this one"""
    return "mounted"


server.mount(other, namespace="other")

if len(sys.argv) > 1:
    server.run(transport="http", port=int(sys.argv[1]), show_banner=False, log_level="WARNING")
else:
    server.run(show_banner=False, log_level="WARNING")
