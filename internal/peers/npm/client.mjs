// An unmodified client on the TypeScript SDK: lists tools and calls those that begin
// with each prefix. argv: v1 or v2, the prefixes joined by commas, then a URL or a
// command. It prints what it got as JSON.
const [version, prefixes, target, ...args] = process.argv.slice(2);

async function load() {
  if (version === 'v1') {
    const [{ Client }, { StdioClientTransport }, { StreamableHTTPClientTransport }, { ElicitRequestSchema, ProgressNotificationSchema }] = await Promise.all([
      import('@modelcontextprotocol/sdk/client/index.js'), import('@modelcontextprotocol/sdk/client/stdio.js'),
      import('@modelcontextprotocol/sdk/client/streamableHttp.js'), import('@modelcontextprotocol/sdk/types.js'),
    ]);
    return { Client, StdioClientTransport, StreamableHTTPClientTransport, question: ElicitRequestSchema, step: ProgressNotificationSchema };
  }
  const [{ Client, StreamableHTTPClientTransport }, { StdioClientTransport }] = await Promise.all([
    import('@modelcontextprotocol/client'), import('@modelcontextprotocol/client/stdio'),
  ]);
  return { Client, StdioClientTransport, StreamableHTTPClientTransport, question: 'elicitation/create', step: 'notifications/progress' };
}

const { Client, StdioClientTransport, StreamableHTTPClientTransport, question, step } = await load();
const client = new Client({ name: `typescript-${version}`, version: '1' }, {
  capabilities: { elicitation: {} },
  ...(version === 'v2' ? { versionNegotiation: { mode: 'auto' } } : {}),
});
client.setRequestHandler(question, async () => ({ action: 'accept', content: { name: 'Ada' } }));
// The SDK drops the onprogress of a call with its result, and runs it a moment after a
// notification came: what is read together with the result is lost to it. A handler of
// one's own gets them all.
let steps;
client.setNotificationHandler(step, ({ params }) => { steps.push(params.progress); });
await client.connect(args.length ? new StdioClientTransport({ command: target, args }) : new StreamableHTTPClientTransport(new URL(target)));

const call = (name, given = {}, options) => version === 'v1'
  ? client.callTool({ name, arguments: given }, undefined, options) : client.callTool({ name, arguments: given }, options);
const { tools } = await client.listTools();
const report = { tools: tools.map((t) => t.name), servers: {} };
for (const prefix of prefixes.split(',')) {
  const { structuredContent } = await call(`${prefix}__add`, { a: 2, b: 3 });
  steps = [];
  await call(`${prefix}__steps`, {}, { onprogress: () => {} });
  const { content } = await call(`${prefix}__ask`);
  report.servers[prefix] = { sum: structuredContent?.sum, steps, answer: content[0].text };
}
await client.close();
console.log(JSON.stringify(report));
