// @ts-check
// A skill: it has a model sum up each answer in one line, and writes that into diary.md of its state.
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { Plugin, YayaError } from "@yaya/plugin";

const plugin = new Plugin({ name: "diary", version: "1.0.0", category: "skill" });

/** @param {string} text */
async function summary(text) {
  const { kind, payload } = await plugin.request("llm.call.request", "diary", {
    provider: plugin.config.provider ?? "llm-echo",
    model: "",
    messages: [{ role: "user", content: `Say in one line what this is about: ${text.slice(0, 4000)}` }],
    params: {},
  });
  if (kind === "llm.call.error") throw new Error(payload.error);
  return payload.text.replace(/\s+/g, " ").slice(0, 200);
}

plugin.on("assistant.message.done", ({ sessionId, payload }) => {
  if (sessionId === "diary" || payload.tool_calls?.length) return; // its own, or the agent goes on
  void plugin.spawn(async () => { // a model takes longer than an event may
    const line = await summary(payload.content);
    await appendFile(join(plugin.stateDir, "diary.md"), `- ${sessionId}: ${line}\n`);
    await plugin.emit("x.diary.written", sessionId, { line }).catch((err) => {
      if (!(err instanceof YayaError)) throw err; // the session may have gone meanwhile
      plugin.log(err.message, "warn");
    });
  });
});

await plugin.run();
