from yaya_plugin import Event, Plugin

plugin = Plugin("my-plugin", "0.1.0", "skill")


@plugin.on("user.message.received")
async def heard(event: Event) -> None:
    """Watches what users say, and publishes an event of its own."""
    words = len(event.payload["text"].split())
    await plugin.emit("x.my-plugin.heard", event.session_id, {"words": words})


plugin.run()
