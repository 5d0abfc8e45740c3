from yaya_plugin import Event, Plugin

plugin = Plugin("my-plugin", "0.1.0", "llm-provider")


@plugin.on("llm.call.request")
async def asked(event: Event) -> None:
    plugin.spawn(answer(event))  # an answer may take longer than an event


async def answer(event: Event) -> None:
    """Answers like a model: any number of deltas, then the whole text."""
    text = "You said: " + event.payload["messages"][-1]["content"]
    await event.reply("llm.call.delta", {"content": text})
    await event.reply("llm.call.response", {"text": text, "usage": {}})


plugin.run()
