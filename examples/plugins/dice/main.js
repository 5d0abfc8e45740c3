// @ts-check
import { randomInt } from "node:crypto";
import { Plugin } from "@yaya/plugin";

const plugin = new Plugin({ name: "dice", version: "1.0.0", category: "tool" });

plugin.tool(
  "roll",
  {
    description: "Rolls dice and returns each of them.",
    kind: "read",
    input: {
      sides: { type: "integer", minimum: 1, maximum: 1000 },
      dice: { type: "integer", minimum: 1, maximum: 100, description: "1 if it is left out" },
    },
    optional: ["dice"],
  },
  ({ sides, dice = 1 }) => {
    const rolled = Array.from({ length: dice }, () => randomInt(1, sides + 1));
    return { rolled, total: rolled.reduce((a, b) => a + b) };
  },
);

await plugin.run();
