// An unmodified Socket of the npm package phoenix as a device of yaya: it joins the
// lobby and an agent, says something, and stays joined over restarts of the server
// without missing an event.
//
//	node watch.mjs URL CODE [MODULE [AGENT]]
//
// MODULE is where phoenix is, "phoenix" by default. AGENT is one that is there, on whichever node
// of a cluster; without it, a new one is begun.
//
// Every line of its output is one JSON object. A line on its input says something to
// the agent.
import { createInterface } from "node:readline";
import { enrol, rpc, transport } from "./yaya.mjs";

const [url, code, module = "phoenix", agentId] = process.argv.slice(2);
const { Socket } = await import(module);
const say = (v) => console.log(JSON.stringify(v));

const device = await enrol(url, { code, deviceId: "phoenix-" + process.pid, label: "phoenix example" });
const { id } = agentId ? { id: agentId } : await rpc(device, "agent.spawn", { skill: "chat", context: {} });
say({ did: "spawn", id });

const socket = new Socket(url.replace(/^http/, "ws") + "/socket", {
  transport: transport(device),
  vsn: "2.0.0",
  reconnectAfterMs: () => 100,
  rejoinAfterMs: () => 100,
});
socket.onOpen(() => say({ did: "open" }));
socket.onClose((e) => say({ did: "close", code: e.code }));
socket.connect();

// Where this client is: it joins again with that, so the parameters are a function.
let cursor = null;
const agent = socket.channel(`agent:${id}`, () => (cursor ? { since: cursor.seq, epoch: cursor.epoch } : {}));
agent.onMessage = (event, payload) => {
  if (payload?.cursor && !event.startsWith("phx_") && !event.startsWith("chan_reply")) {
    cursor = payload.cursor;
    say({ event, seq: cursor.seq });
  } else if (event === "stream_chunk") {
    say({ event, text: payload.chunk });
  }
  return payload;
};
agent.onClose(() => say({ did: "closed" }));
agent
  .join()
  .receive("ok", (r) => {
    cursor ??= r.cursor;
    say({ did: "joined", cursor: r.cursor, resync: r.resync ?? null });
  })
  .receive("error", (r) => say({ did: "refused", ...r }));
const lobby = socket.channel("agent:lobby");
lobby.on("update_agent", (p) => say({ event: "update_agent", status: p.status }));
lobby.join();

for await (const line of createInterface({ input: process.stdin })) {
  if (line === "quit") break;
  agent
    .push("message", { content: line, id: "m-" + line })
    .receive("ok", (r) => say({ did: "said", turn: r.turn_id }))
    .receive("error", (r) => say({ did: "refused", ...r }))
    .receive("timeout", () => say({ did: "timeout" }));
}
agent.leave().receive("ok", () => socket.disconnect(() => process.exit(0)));
