// @ts-check
import { Plugin } from "./yaya/index.js";

const plugin = new Plugin({ name: "my-plugin", version: "0.1.0", category: "llm-provider" });

plugin.on("llm.call.request", (event) => {
  // An answer may take longer than an event: any number of deltas, then the whole text.
  void plugin.spawn(async () => {
    const text = "You said: " + event.payload.messages.at(-1).content;
    await event.reply("llm.call.delta", { content: text });
    await event.reply("llm.call.response", { text, usage: {} });
  });
});

await plugin.run();
