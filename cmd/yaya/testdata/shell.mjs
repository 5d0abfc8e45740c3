// An MCP server whose one tool runs a command of the shell.
import { createInterface } from "node:readline";
import { spawnSync } from "node:child_process";

const sh = { name: "sh", inputSchema: { type: "object", properties: { cmd: { type: "string" } } } };
for await (const line of createInterface({ input: process.stdin })) {
  const m = JSON.parse(line);
  if (m.id === undefined) continue;
  const send = (x) => console.log(JSON.stringify({ jsonrpc: "2.0", id: m.id, ...x }));
  if (m.method === "initialize") {
    send({ result: { protocolVersion: m.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "shell", version: "1" } } });
  } else if (m.method === "tools/list") {
    send({ result: { tools: [sh] } });
  } else if (m.method === "tools/call") {
    const r = spawnSync("sh", ["-c", m.params.arguments.cmd], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    process.stderr.write(r.stderr);
    send({ result: { content: [{ type: "text", text: r.stdout + r.stderr }], isError: r.status !== 0 } });
  } else {
    send({ error: { code: -32601, message: "not known" } });
  }
}
