"""A strategy: the model is offered tools that read, and is told to answer after a few steps."""

from yaya_plugin import Event, Plugin
from yaya_plugin.events import StrategyDecideRequest, StrategyDecideResponse

plugin = Plugin("scout", "1.0.0", "strategy")
READERS = ["read_file", "search", "repo_tree", "read_artifact"]
PROMPT = "You look around and report. Say what you could not find."
ANSWER = " You have looked long enough: answer now."


@plugin.on("strategy.decide.request")
async def decide(event: Event) -> None:
    await event.reply("strategy.decide.response", dict(next_step(event.payload)))


def next_step(request: StrategyDecideRequest) -> StrategyDecideResponse:
    state = request["state"]
    if state.get("pending"):  # calls that the model has asked for
        return {"next": "tool"}
    if state["answered"]:
        return {"next": "done"}
    wanted = plugin.config.get("tools", READERS)
    tools = [name for name in state["tool_names"] or [] if name in wanted]
    late = state["step"] >= plugin.config.get("steps", 5)
    return {"next": "llm", "tools": tools, "system": PROMPT + (ANSWER if late else "")}


@plugin.on("config.updated")
async def changed(_: Event) -> None:
    await plugin.refresh()


plugin.run()
