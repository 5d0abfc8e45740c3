from yaya_plugin import Event, Plugin

plugin = Plugin("my-plugin", "0.1.0", "strategy")


@plugin.on("strategy.decide.request")
async def decide(event: Event) -> None:
    """Says what comes next: the model, the tools that it called, or the end of the turn."""
    state = event.payload["state"]
    if state.get("pending"):
        step = {"next": "tool"}
    elif state["answered"]:
        step = {"next": "done"}
    else:
        step = {"next": "llm", "provider": plugin.config.get("provider", "llm-echo")}
    await event.reply("strategy.decide.response", step)


plugin.run()
