// Checked by tsc, not run: the types of a tool's arguments follow from their schemas.

import { Plugin, Result, ToolError, Verdict, type Event } from "../index.js";
import { Harness } from "../testing.js";

const plugin = new Plugin({ name: "subject", version: "1.0.0", category: "tool" });

plugin.tool(
  "forecast",
  { description: "Forecasts.", kind: "network", input: { place: { type: "string" }, days: { type: "integer" }, units: { enum: ["metric", "imperial"] } }, optional: ["days"] },
  async ({ place, days, units }, call) => {
    const text: string = place;
    const count: number | undefined = days;
    const unit: "metric" | "imperial" = units;
    // @ts-expect-error days may be absent
    const sure: number = days;
    call.progress(1, 2);
    if (call.signal.aborted) throw new ToolError("late", "timeout");
    return Result.text(`${text} ${count} ${unit} ${sure}`);
  },
);

// @ts-expect-error a kind that does not exist
plugin.tool("a", { description: "A.", kind: "run" }, () => "");
// @ts-expect-error an argument that does not exist
plugin.tool("b", { description: "B.", input: { a: { type: "string" } }, optional: ["b"] }, () => "");
plugin.on("memory.query", ({ payload }) => {
  const limit: number = payload.k;
  // @ts-expect-error a member that the payload does not have
  return payload.q ?? limit;
});
plugin.on("x.weather.changed", ({ payload }) => payload.anything);
plugin.on("memory.query", (event: Event<{ query: string }>) => event.reply("memory.result", { hits: [], query: event.payload.query }));
plugin.guardTool(({ name, args }) => (name === "shell" && args.command === "rm" ? Verdict.deny("by hand") : Verdict.allow()));
// @ts-expect-error a guard that may forget its answer
plugin.guardPrompt(({ text }) => (text ? Verdict.deny("no") : undefined));

export const harness: Promise<Harness> = Harness.start(plugin, { config: {} });
