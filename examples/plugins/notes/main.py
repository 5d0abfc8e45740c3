"""A long-term memory: one entry a line, found by its words."""

import json
import os
import re

from yaya_plugin import Event, Health, Plugin

plugin = Plugin("notes", "1.0.0", "memory")
entries: list[dict] = []


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def file() -> str:
    return os.path.join(plugin.state_dir, "notes.jsonl")


@plugin.on_start
async def read() -> None:
    if os.path.exists(file()):
        with open(file(), encoding="utf-8") as lines:
            for line in lines:
                if line.endswith("\n"):  # otherwise the machine stopped while it was written
                    entries.append(json.loads(line))


# The handlers are async, so that they run one after the other on one thread.
@plugin.on("memory.write")
async def write(event: Event) -> None:
    entry = event.payload["entry"]
    with open(file(), "a", encoding="utf-8") as out:
        out.write(json.dumps(entry) + "\n")
        out.flush()
        os.fsync(out.fileno())
    entries.append(entry)


@plugin.on("memory.query")
async def query(event: Event) -> None:
    asked = words(event.payload["query"])
    here = event.payload.get("folder", "")  # memories of a folder are for that folder
    shared = [
        (len(asked & words(entry["text"])), n)
        for n, entry in enumerate(entries)
        if (entry.get("meta") or {}).get("folder", "") == here
    ]
    best = sorted((pair for pair in shared if pair[0] > 0), reverse=True)
    await event.reply("memory.result", {"hits": [entries[n] for _, n in best[: event.payload["k"]]]})


@plugin.health
async def health() -> Health:
    return Health("ok", f"{len(entries)} entries")


plugin.run()
