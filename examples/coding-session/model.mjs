// A model with OpenAI's chat completions API that follows a script: it reads a file,
// changes it wrongly, and repairs it once it is shown that the check has failed.
import { createServer } from "node:http";

const patch = (from, to) => `--- a/add.sh
+++ b/add.sh
@@ -1,2 +1,2 @@
 #!/bin/sh
-${from}
+${to}
`;
const steps = [
  { tool: "read_file", args: { path: "add.sh" } },
  { tool: "apply_patch", args: { patch: patch("echo $(($1 - $2))", "echo $(($1 * $2))") } },
  { text: "I have changed the operator." },
  { tool: "apply_patch", args: { patch: patch("echo $(($1 * $2))", "echo $(($1 + $2))") } },
  { text: "It adds now." },
];

createServer((req, res) => {
  let body = "";
  req.on("data", (d) => (body += d));
  req.on("end", () => {
    const messages = JSON.parse(body).messages;
    // The place in the script is how often the model has answered since the question.
    const asked = messages.findLastIndex((m) => m.role === "user");
    const said = messages.slice(asked).filter((m) => m.role === "assistant" && m.tool_calls?.[0]?.function.name !== "verify").length;
    const checks = messages.slice(asked).filter((m) => m.role === "assistant" && m.tool_calls?.[0]?.function.name === "verify").length;
    const step = steps[Math.min(said + checks, steps.length - 1)];
    res.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish_reason = null) =>
      res.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    if (step.text) {
      for (const word of step.text.split(/(?<= )/)) send({ role: "assistant", content: word });
      send({}, "stop");
    } else {
      send({ role: "assistant", tool_calls: [{ index: 0, id: `call_${messages.length}`, type: "function", function: { name: step.tool, arguments: JSON.stringify(step.args) } }] });
      send({}, "tool_calls");
    }
    res.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [], usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 } })}\n\n`);
    res.end("data: [DONE]\n\n");
  });
}).listen(Number(process.argv[2]), "127.0.0.1");
