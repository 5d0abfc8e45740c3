// A client of yaya's session API, as small as an editor's could be. Its types come
// from the OpenAPI document of the yaya that it talks to.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.d.ts";

type SessionEvent = components["schemas"]["SessionEvent"];

const [base, workspace] = process.argv.slice(2) as [string, string];
const api = createClient<paths>({ baseUrl: base });

function must<T>(r: { data?: T; error?: unknown }): T {
  if (r.data === undefined) throw new Error(JSON.stringify(r.error));
  return r.data;
}

// events follows a session, and comes back with the last id when the stream breaks.
async function* events(id: string): AsyncGenerator<SessionEvent> {
  let last = "";
  for (let tries = 0; tries < 20; tries++) {
    const resp = await fetch(`${base}/v1/sessions/${id}/events`, { headers: last ? { "Last-Event-ID": last } : {} });
    if (!resp.ok || !resp.body) throw new Error(`events: ${resp.status}`);
    let text = "";
    for await (const chunk of resp.body.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const lines = text.slice(0, end).split("\n");
        last = lines.find((l) => l.startsWith("id: "))?.slice(4) ?? last;
        const data = lines.find((l) => l.startsWith("data: "))?.slice(6);
        if (data) yield JSON.parse(data) as SessionEvent;
      }
    }
  }
}

const { session_id } = must(await api.POST("/v1/sessions", { params: { header: {} }, body: { workspace_path: workspace, title: "fix add.sh" } }));
const path = { session_id };
must(
  await api.POST("/v1/sessions/{session_id}/messages", {
    params: { path, header: {} },
    body: { id: "msg_1", role: "user", parts: [{ type: "text", text: "add.sh subtracts. Make it add." }] },
  }),
);

let said = "";
for await (const ev of events(session_id)) {
  switch (ev.type) {
    case "model_output_delta":
      said += ev.data.text;
      break;
    case "model_output_completed":
      if (said) console.log("model:", said);
      said = "";
      break;
    case "tool_call_started":
      console.log("calls:", ev.data.tool_call.name);
      break;
    case "approval_requested": {
      console.log("approves:", ev.data.brief);
      const { tool_call_id } = ev.data;
      must(await api.POST("/v1/sessions/{session_id}/approve", { params: { path }, body: { tool_call_id, action: "approve" } }));
      break;
    }
    case "verify_completed":
      console.log("check:", ev.data.command, "→", ev.data.exit_code === 0 ? "passed" : "failed");
      break;
    case "session_failed":
    case "session_canceled":
      throw new Error(JSON.stringify(ev.data));
  }
  if (ev.type === "turn_completed") break;
}
const state = must(await api.GET("/v1/sessions/{session_id}", { params: { path } }));
console.log("session:", state.status, state.state, "after", state.usage.steps, "steps");
