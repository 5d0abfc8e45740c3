// A foreign MessagePack on the wire: the npm package @msgpack/msgpack reads what
// yaya sends and yaya reads what it writes.
//
//	node msgpack.mjs URL CODE [MODULE]
import { answer, enrol, rpc } from "./yaya.mjs";

const [url, code, module = "@msgpack/msgpack"] = process.argv.slice(2);
const { encode, decode } = await import(module);

const device = await enrol(url, { code, deviceId: "msgpack-" + process.pid, label: "MessagePack example" });
const { id } = await rpc(device, "agent.spawn", { skill: "chat", context: {} });
const dialled = url.replace(/^http/, "ws") + "/ws?vsn=2.0.0";
const ws = new WebSocket(dialled, "yaya.msgpack");
ws.binaryType = "arraybuffer";
const send = (v) => ws.send(encode(v));

let whole = "";
ws.onmessage = async (e) => {
  if (!(e.data instanceof ArrayBuffer)) throw new Error("a text frame");
  const frame = decode(e.data);
  if (frame.type === "auth_challenge") return send(await answer(device, dialled, frame.challenge));
  if (frame.type === "auth_ok") return send(["1", "1", `agent:${id}`, "phx_join", { session_id: frame.session_id }]);
  const [, ref, , event, payload] = frame;
  if (event === "phx_reply" && payload.status !== "ok") throw new Error(JSON.stringify(payload));
  if (ref === "1") return send(["1", "2", `agent:${id}`, "message", { content: "größe ✓ " + "x".repeat(300), id: "m" }]);
  if (event === "stream_chunk") whole += payload.chunk;
  if (event === "turn.completed") {
    if (!Number.isInteger(payload.cursor.seq)) throw new Error("the cursor is not an integer");
    console.log(whole);
    ws.close();
  }
};
ws.onclose = (e) => process.exit(e.code === 1000 || whole ? 0 : 1);
