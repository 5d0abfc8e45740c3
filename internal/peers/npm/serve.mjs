// Serves what make(ctx) returns, on the TypeScript SDK v2, in both eras: over stdio,
// or over HTTP at the port that the command line names. Legacy clients have sessions,
// so that the server can ask them something.
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { createMcpHandler, isLegacyRequest } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { NodeStreamableHTTPServerTransport, localhostHostValidation, localhostOriginValidation, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';

export function serve(make) {
  const port = process.argv[2];
  if (!port) {
    serveStdio(make);
    return;
  }
  const handler = createMcpHandler(make, { legacy: 'reject' });
  const modern = toNodeHandler(handler);
  const sessions = new Map();
  const guards = [localhostHostValidation(), localhostOriginValidation()];
  createServer(async (req, res) => {
    if (!guards.every((passes) => passes(req, res))) return;
    const chunks = [];
    for await (const chunk of req) chunks.push(chunk);
    let body;
    try {
      body = chunks.length ? JSON.parse(Buffer.concat(chunks)) : undefined;
    } catch {
      res.writeHead(400).end();
      return;
    }
    if (!(await isLegacyRequest(await toWebRequest(req, body), body))) {
      await modern(req, res, body);
      return;
    }
    let transport = sessions.get(req.headers['mcp-session-id']);
    if (!transport && req.headers['mcp-session-id']) {
      res.writeHead(404).end();
      return;
    }
    if (!transport) {
      transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
        onsessionclosed: (id) => sessions.delete(id),
      });
      await make({ era: 'legacy', changed: handler.notify }).connect(transport);
    }
    await transport.handleRequest(req, res, body);
  }).listen(Number(port), '127.0.0.1');
  return handler.notify; // tells subscribers of the modern era what changed
}
