import asyncio
from pathlib import Path

from yaya_plugin import Event, Plugin

plugin = Plugin("my-plugin", "0.1.0", "adapter")


@plugin.on_start
async def start() -> None:
    plugin.spawn(listen())


async def listen() -> None:
    """Sends the text of ask.txt, in the state folder, to the session my-plugin."""
    while True:
        for ask in Path(plugin.state_dir).glob("ask.txt"):
            text = ask.read_text(encoding="utf-8")
            ask.unlink()
            await plugin.emit("user.message.received", "my-plugin", {"text": text})
        await asyncio.sleep(0.2)


@plugin.on("assistant.message.done")
async def answered(event: Event) -> None:
    if event.session_id == "my-plugin":
        Path(plugin.state_dir, "answer.txt").write_text(event.payload["content"], encoding="utf-8")


plugin.run()
