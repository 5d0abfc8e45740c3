// @ts-check
import { Plugin } from "./yaya/index.js";

const plugin = new Plugin({ name: "my-plugin", version: "0.1.0", category: "memory" });
/** @type {{ text: string, meta?: Record<string, string> }[]} */
const entries = []; // keep them in plugin.stateDir to have them after a restart
const words = (/** @type {string} */ text) => new Set(text.toLowerCase().split(/\s+/));

plugin.on("memory.write", ({ payload }) => {
  entries.push(payload.entry);
});

plugin.on("memory.query", async (event) => {
  const asked = words(event.payload.query);
  const here = event.payload.folder ?? ""; // memories of a folder are for that folder
  const hits = entries.filter(
    ({ text, meta }) => (meta?.folder ?? "") === here && [...words(text)].some((word) => asked.has(word)),
  );
  await event.reply("memory.result", { hits: hits.slice(0, event.payload.k) });
});

await plugin.run();
