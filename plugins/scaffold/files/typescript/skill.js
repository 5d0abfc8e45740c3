// @ts-check
import { Plugin } from "./yaya/index.js";

const plugin = new Plugin({ name: "my-plugin", version: "0.1.0", category: "skill" });

// Watches what users say, and publishes an event of its own.
plugin.on("user.message.received", async ({ sessionId, payload }) => {
  const words = payload.text.split(/\s+/).filter(Boolean).length;
  await plugin.emit("x.my-plugin.heard", sessionId, { words });
});

await plugin.run();
