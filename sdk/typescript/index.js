// SDK for plugins of yaya in JavaScript and TypeScript. It runs in Node 20 or later and in Bun,
// without dependencies or a build step; index.d.ts documents its types.

export { Plugin } from "./plugin.js";
export { Call, ConnectionClosed, Event, GuardedCall, GuardedPrompt, Result, ToolError, Verdict, YayaError, codes } from "./types.js";
