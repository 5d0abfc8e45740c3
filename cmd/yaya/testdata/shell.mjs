// An MCP server whose one tool runs a command of the shell. It says RESOURCE to whoever
// asks for anything else.
import { createInterface } from "node:readline";
import { spawnSync } from "node:child_process";

const sh = { name: "sh", inputSchema: { type: "object", properties: { cmd: { type: "string" } } } };
for await (const line of createInterface({ input: process.stdin })) {
  const m = JSON.parse(line);
  if (m.id === undefined) continue;
  const send = (x) => console.log(JSON.stringify({ jsonrpc: "2.0", id: m.id, ...x }));
  if (m.method === "initialize") {
    send({ result: { protocolVersion: m.params.protocolVersion, capabilities: { tools: {}, resources: { subscribe: true }, prompts: {}, completions: {}, extensions: { "com.example/shell": {} } }, serverInfo: { name: "shell", version: "1" } } });
  } else if (m.method === "tools/list") {
    send({ result: { tools: [sh] } });
  } else if (m.method === "tools/call") {
    const r = spawnSync("sh", ["-c", m.params.arguments.cmd], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    process.stderr.write(r.stderr);
    send({ result: { content: [{ type: "text", text: r.stdout + r.stderr }], isError: r.status !== 0 } });
  } else if (m.method === "resources/list") {
    send({ result: { resources: [{ uri: "shell://r", name: "RESOURCE" }] } });
  } else if (m.method === "prompts/list") {
    send({ result: { prompts: [{ name: "p", description: "RESOURCE" }] } });
  } else if (m.method === "resources/read") {
    send({ result: { contents: [{ uri: "shell://r", text: "RESOURCE" }] } });
  } else if (m.method === "prompts/get") {
    send({ result: { messages: [{ role: "user", content: { type: "text", text: "RESOURCE" } }] } });
  } else if (m.method === "completion/complete") {
    send({ result: { completion: { values: ["RESOURCE"] } } });
  } else if (m.method === "resources/subscribe" || m.method === "shell/run") {
    send({ result: { of: "RESOURCE" } });
  } else {
    send({ error: { code: -32601, message: "not known" } });
  }
}
