// @ts-check
import { Plugin } from "./yaya/index.js";

const plugin = new Plugin({ name: "my-plugin", version: "0.1.0", category: "tool" });

plugin.tool(
  "my_plugin_greet",
  {
    description: "Greets somebody.",
    kind: "read",
    input: { who: { type: "string", description: "who to greet" } },
  },
  ({ who }) => `Hello, ${who}!`,
);

await plugin.run();
