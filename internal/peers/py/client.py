"""An unmodified client on the Python SDK: lists tools and calls those that begin with
each prefix. argv: legacy or auto, the prefixes joined by commas, then a URL or a
command. It prints what it got as JSON."""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult


async def answer(_context, _params) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada"})


async def main(mode: str, prefixes: str, target: str, *args: str) -> None:
    server = StdioServerParameters(command=target, args=list(args)) if args else target
    async with Client(server, mode=mode, elicitation_callback=answer) as client:
        tools = await client.list_tools()
        report = {"tools": [t.name for t in tools.tools], "servers": {}}
        for prefix in prefixes.split(","):
            added = await client.call_tool(f"{prefix}__add", {"a": 2, "b": 3})
            steps: list[float] = []

            async def progress(done: float, _total: float | None, _message: str | None) -> None:
                steps.append(done)

            await client.call_tool(f"{prefix}__steps", progress_callback=progress)
            asked = await client.call_tool(f"{prefix}__ask")
            report["servers"][prefix] = {
                "sum": (added.structured_content or {}).get("sum"),
                "steps": steps,
                "answer": asked.content[0].text,
            }
    print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
