from yaya_plugin import Event, Plugin

plugin = Plugin("my-plugin", "0.1.0", "memory")
entries: list[dict] = []  # keep them in plugin.state_dir to have them after a restart


@plugin.on("memory.write")
async def write(event: Event) -> None:
    entries.append(event.payload["entry"])


@plugin.on("memory.query")
async def query(event: Event) -> None:
    asked = set(event.payload["query"].lower().split())
    here = event.payload.get("folder", "")  # memories of a folder are for that folder
    hits = [
        entry
        for entry in entries
        if (entry.get("meta") or {}).get("folder", "") == here and asked & set(entry["text"].lower().split())
    ]
    await event.reply("memory.result", {"hits": hits[: event.payload["k"]]})


plugin.run()
