// A small server on the TypeScript SDK v2.
import { McpServer, inputRequired, acceptedContent } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { serve } from './serve.mjs';

serve(() => {
  const s = new McpServer({ name: 'typescript-v2', version: '1' });
  s.registerTool('add', {
    description: 'Adds two numbers', inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }),
  }, async ({ a, b }) => ({ content: [{ type: 'text', text: JSON.stringify({ sum: a + b }) }], structuredContent: { sum: a + b } }));
  s.registerTool('steps', { description: 'Reports three steps', inputSchema: z.object({}) }, async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (let progress = 1; progressToken !== undefined && progress <= 3; progress++) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 3 } });
    }
    return { content: [{ type: 'text', text: 'done' }] };
  });
  const name = z.object({ name: z.string() });
  s.registerTool('ask', { description: 'Asks for a name', inputSchema: z.object({}) }, async (_, { mcpReq }) => {
    const answer = acceptedContent(mcpReq.inputResponses, 'who', name);
    if (!answer) {
      return inputRequired({ inputRequests: { who: inputRequired.elicit({ message: 'Who are you?', requestedSchema: name }) } });
    }
    return { content: [{ type: 'text', text: `Hello ${answer.name}` }] };
  });
  return s;
});
