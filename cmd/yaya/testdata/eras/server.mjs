// A server on the TypeScript SDK that says in which era it is called: over stdio,
// or at the port that it is given. argv: folder of packages, "both" or "reject"
// (the legacy era), port.
import http from 'node:http';
import { pathToFileURL } from 'node:url';

const [packages, legacy, port] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${packages}/${path}`).href);
const { McpServer, createMcpHandler } = await load('@modelcontextprotocol/server/dist/index.mjs');
const { serveStdio } = await load('@modelcontextprotocol/server/dist/stdio.mjs');
const { z } = await load('zod/index.js');

const make = ({ era }) => {
  const s = new McpServer({ name: 'typescript', version: '1' });
  s.registerTool('era', { description: 'Says the era', inputSchema: z.object({}) }, async () => ({ content: [{ type: 'text', text: era }] }));
  return s;
};
const options = legacy === 'reject' ? { legacy } : {};
if (port) {
  const handler = createMcpHandler(make, options);
  http.createServer(async (req, res) => {
    const body = [];
    for await (const chunk of req) body.push(chunk);
    const answer = await handler.fetch(new Request(`http://127.0.0.1:${port}${req.url}`, {
      method: req.method, headers: req.headers, body: body.length ? Buffer.concat(body) : undefined,
    }));
    res.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body) for await (const chunk of answer.body) res.write(chunk);
    res.end();
  }).listen(port, '127.0.0.1');
} else {
  serveStdio(make, options);
}
