// A small server on the TypeScript SDK v1: over stdio, or over HTTP at the port that
// the command line names.
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

function make() {
  const s = new McpServer({ name: 'typescript-v1', version: '1' });
  s.registerTool('add', {
    description: 'Adds two numbers', inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() },
  }, async ({ a, b }) => ({ content: [{ type: 'text', text: JSON.stringify({ sum: a + b }) }], structuredContent: { sum: a + b } }));
  s.registerTool('steps', { description: 'Reports three steps', inputSchema: {} }, async (_, { _meta, sendNotification }) => {
    const progressToken = _meta?.progressToken;
    for (let progress = 1; progressToken !== undefined && progress <= 3; progress++) {
      await sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 3 } });
    }
    return { content: [{ type: 'text', text: 'done' }] };
  });
  s.registerTool('ask', { description: 'Asks for a name', inputSchema: {} }, async () => {
    const answer = await s.server.elicitInput({
      message: 'Who are you?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    });
    return { content: [{ type: 'text', text: `Hello ${answer.content?.name}` }] };
  });
  return s;
}

const port = process.argv[2];
if (!port) {
  await make().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  createServer(async (req, res) => {
    let transport = sessions.get(req.headers['mcp-session-id']);
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
        onsessionclosed: (id) => sessions.delete(id),
      });
      await make().connect(transport);
    }
    await transport.handleRequest(req, res);
  }).listen(Number(port), '127.0.0.1');
}
