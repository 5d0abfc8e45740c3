"""A model provider: models that run in Ollama, by its API /api/chat."""

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any, Iterator

from yaya_plugin import Event, Instance, Plugin

plugin = Plugin("ollama", "1.0.0", "llm-provider")


@plugin.on("llm.call.request")
async def asked(event: Event) -> None:
    plugin.spawn(answer(event))  # the answer takes longer than an event may


@plugin.on("config.updated")
async def changed(_: Event) -> None:
    await plugin.refresh()


async def answer(event: Event) -> None:
    instance = next(i for i in plugin.providers if i.id == event.payload["provider"])
    text, usage = "", {}
    calls: list[dict[str, Any]] = []
    try:
        stream = chat(instance, event.payload)
        while (part := await asyncio.to_thread(next, stream, None)) is not None:
            message = part.get("message") or {}
            if message.get("content"):
                text += message["content"]
                await event.reply("llm.call.delta", {"content": message["content"]})
            for call in message.get("tool_calls") or []:
                function = call["function"]
                calls.append({"id": f"call_{len(calls)}", "name": function["name"], "args": function["arguments"]})
            if part.get("done"):
                usage = {"input_other": part.get("prompt_eval_count", 0), "output": part.get("eval_count", 0)}
    except urllib.error.HTTPError as err:
        said = err.read(2000).decode("utf-8", "replace")
        await event.reply("llm.call.error", {"error": said, "kind": "status", "status_code": err.code})
    except OSError as err:
        await event.reply("llm.call.error", {"error": f"Ollama does not answer: {err}", "kind": "connection"})
    else:
        await event.reply("llm.call.response", {"text": text, "tool_calls": calls, "usage": usage})


def chat(instance: Instance, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the parts of an answer."""
    url = instance.config.get("base_url", "http://127.0.0.1:11434") + "/api/chat"
    body = {
        "model": request["model"] or instance.config.get("model", ""),
        "messages": [message(m) for m in request["messages"] or []],
        "tools": [{"type": "function", "function": tool} for tool in request["tools"] or []],
    }
    post = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(post, timeout=300) as lines:
        for line in lines:
            yield json.loads(line)


def message(m: dict[str, Any]) -> dict[str, Any]:
    out = {"role": m["role"], "content": m["content"]}
    if m.get("tool_calls"):
        out["tool_calls"] = [{"function": {"name": c["name"], "arguments": c["args"]}} for c in m["tool_calls"]]
    return out


plugin.run()
