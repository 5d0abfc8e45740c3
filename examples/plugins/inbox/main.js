// @ts-check
// An adapter: each file NAME.txt that is moved into the folder "inbox" of the plugin's state is a
// message of the session inbox-NAME, and NAME.answer has what the agent says.
import { mkdirSync, readdirSync, watch } from "node:fs";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Plugin } from "@yaya/plugin";

const plugin = new Plugin({ name: "inbox", version: "1.0.0", category: "adapter" });
const folder = () => join(plugin.stateDir, "inbox");
/** @type {Set<string>} */
const taken = new Set();

/** @param {string | null} file */
async function take(file) {
  const name = file?.match(/^([a-z0-9-]{1,40})\.txt$/)?.[1];
  if (!name || taken.has(name)) return;
  taken.add(name);
  try {
    const text = await readFile(join(folder(), `${name}.txt`), "utf8");
    await rename(join(folder(), `${name}.txt`), join(folder(), `${name}.asked`));
    await plugin.emit("user.message.received", `inbox-${name}`, { text });
  } catch (err) {
    if (/** @type {NodeJS.ErrnoException} */ (err).code !== "ENOENT") throw err; // it was moved away
  } finally {
    taken.delete(name);
  }
}

/** @param {string} sessionId @param {string} text */
async function put(sessionId, text) {
  const name = sessionId.match(/^inbox-([a-z0-9-]{1,40})$/)?.[1];
  if (!name) return; // a conversation of somebody else's
  await writeFile(join(folder(), `${name}.part`), `${text}\n`);
  await rename(join(folder(), `${name}.part`), join(folder(), `${name}.answer`));
}

plugin.on("assistant.message.done", async ({ sessionId, payload }) => {
  if (!payload.tool_calls?.length) await put(sessionId, payload.content); // otherwise it goes on
});
plugin.on("turn.failed", (event) => put(event.sessionId, `The turn failed: ${event.payload.error}`));

plugin.onStart(() => {
  mkdirSync(folder(), { recursive: true });
  const look = (/** @type {string | null} */ file) => void plugin.spawn(() => take(file));
  const watcher = watch(folder(), (_, file) => look(file));
  plugin.onShutdown(() => watcher.close());
  for (const file of readdirSync(folder())) look(file);
});

await plugin.run();
