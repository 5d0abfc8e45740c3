// @ts-check
import { Plugin } from "./yaya/index.js";

const plugin = new Plugin({ name: "my-plugin", version: "0.1.0", category: "strategy" });

// Says what comes next: the model, the tools that it called, or the end of the turn.
plugin.on("strategy.decide.request", async (event) => {
  const { pending, answered } = event.payload.state;
  if (pending?.length) await event.reply("strategy.decide.response", { next: "tool" });
  else if (answered) await event.reply("strategy.decide.response", { next: "done" });
  else await event.reply("strategy.decide.response", { next: "llm", provider: plugin.config.provider ?? "llm-echo" });
});

await plugin.run();
