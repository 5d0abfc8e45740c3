"""A small server on the Python SDK: over stdio, or over HTTP at the port given."""

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("python", log_level="WARNING")


class Sum(BaseModel):
    sum: int


class Person(BaseModel):
    name: str


@server.tool()
def add(a: int, b: int) -> Sum:
    """Adds two numbers"""
    return Sum(sum=a + b)


@server.tool()
async def steps(ctx: Context) -> str:
    """Reports three steps"""
    for i in range(3):
        await ctx.report_progress(i + 1, 3)
    return "done"


def who() -> Elicit[Person]:
    return Elicit("Who are you?", Person)


@server.tool()
def ask(person: Annotated[Person, Resolve(who)]) -> str:
    """Asks for a name"""
    return f"Hello {person.name}"


if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run()
