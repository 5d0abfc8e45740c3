// @ts-check
import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Plugin } from "./yaya/index.js";

const plugin = new Plugin({ name: "my-plugin", version: "0.1.0", category: "adapter" });
const file = (/** @type {string} */ name) => join(plugin.stateDir, name);

// Sends the text of ask.txt, in the state folder, to the session my-plugin.
plugin.onStart(() => {
  void plugin.spawn(async (signal) => {
    for (; ; await pause(200, undefined, { signal })) {
      if (!existsSync(file("ask.txt"))) continue;
      const text = await readFile(file("ask.txt"), "utf8");
      await rm(file("ask.txt"));
      await plugin.emit("user.message.received", "my-plugin", { text });
    }
  });
});

plugin.on("assistant.message.done", async ({ sessionId, payload }) => {
  if (sessionId === "my-plugin") await writeFile(file("answer.txt"), payload.content);
});

await plugin.run();
