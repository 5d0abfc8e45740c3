// What sandboxes enforce: the view follows the settings, a sandbox that is off is seen
// from the first page on, and questions and servers say what runs in which.
import { act, assert, checked, go, heading, idle, newSession, open, reject, run, say, shot } from './lib.mjs';

const at = (page, name) => page.getByRole('region', { name });

const ASKS = [
  { tool_name: 'shell', brief: 'run: make', params: { command: 'make', cwd: '/w', sandbox: 'profile command (landlock)', weaker: ['the network is off: Landlock knows ports'] } },
  { tool_name: 'shell', brief: 'run outside the sandbox: git push', params: { command: 'git push', outside: true, reason: 'it needs your key', cwd: '/w', sandbox: 'none: it runs outside the sandbox, with all rights of your user' } },
  { tool_name: 'verify', brief: 'check', params: { sandbox: 'off, as the setting sandbox.mode says: it runs with all rights of your user' } },
  { tool_name: 'sandbox_host', brief: 'the command wants to reach api.example.com:443', params: { host: 'api.example.com', port: 443, command: 'curl https://api.example.com', cwd: '/w' } },
  { tool_name: 'evil__shell', brief: '', params: { sandbox: 'profile command (namespaces)' } },
].map((a, i) => ({ ...a, id: `a${i}`, call_id: `c${i}`, session_id: 's', digest: `d${i}`, deadline: new Date(Date.now() + 6e5).toISOString(), decisions: ['approve', 'approve_for_session', 'reject'] }));

const server = (name, sandbox) => ({ name, transport: 'stdio', endpoint: 'x', file: '/c/mcp.json', editable: false, state: 'ready', tools: 1, restarts: 0, start_ms: 1, calls: { total: 0, errors: 0, p50_ms: 0, p95_ms: 0 }, config: {}, sandbox });
const SERVERS = [
  server('bounded', {
    profile: 'server', allowed: 'in sandbox profile server: reads /w; writes none of your files; reaches pypi.org', backend: 'namespaces', enforced: ['hidden files', 'hosts'], missing: ['memory is bounded for each process'],
    denied: [{ what: 'server "bounded" was kept from reaching example.com:443 (profile server)', allow: 'yaya mcp allow bounded --host example.com' }, { what: 'server "bounded" may have been kept from /c, which belongs to yaya itself' }],
  }),
  server('free', { profile: 'off', allowed: 'outside the sandbox, with all your rights' }),
  server('lost', { profile: 'guarded', allowed: 'in sandbox profile guarded', backend: 'off', missing: ['nothing is enforced'] }),
];

await run(async () => {
  const page = await open({ options: { permissions: ['clipboard-read', 'clipboard-write'] } });
  await heading(page, 'Home');
  await go(page, 'sandbox');
  await heading(page, 'Sandbox');
  const now = JSON.parse(await act('report'));
  const row = (name) => page.getByRole('row').filter({ has: page.getByText(name, { exact: true }) });
  for (const p of now.profiles) {
    const text = await row(p.profile).innerText();
    assert.ok(text.includes(p.about) && text.includes(p.lacks.map((x) => (x === 'hosts' ? 'hosts: the network is off' : x)).join(', ') || 'nothing'), `${p.profile}: ${text}`);
  }
  for (const g of [...now.gaps, ...now.breaks]) await page.getByText(g.what, { exact: true }).waitFor();
  await page.getByText(now.summary).waitFor();

  // Switched off while it is looked at.
  await act('mode', 'off');
  await page.getByText('off: nothing is enforced').waitFor();
  await row('guarded').getByText('everything').waitFor();
  const fix = page.getByRole('group', { name: 'The command that changes it' });
  assert.equal(await fix.innerText(), 'yaya config set sandbox.mode prefer');
  await page.getByRole('button', { name: 'Copy' }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'yaya config set sandbox.mode prefer');
  await shot(page, 'sandbox-off');
  await checked(page, 'the view, off');
  await go(page, '');
  const warning = page.locator('p.problem', { hasText: 'off: nothing is enforced' });
  await warning.waitFor();
  await warning.getByRole('link', { name: 'Sandbox' }).click();
  await heading(page, 'Sandbox');
  await act('mode', 'prefer');
  await page.getByText(now.summary).waitFor();
  await go(page, '');
  await heading(page, 'Home');
  await warning.waitFor({ state: 'detached' });

  // Questions of the agent's own commands.
  await newSession(page);
  const question = page.getByRole('region', { name: /^yaya asks/ });
  for (const [text, name, said] of [
    ['inside', 'yaya asks: Run this command?', `In the sandbox: profile command (${now.backend})`],
    ['outside', 'yaya asks: Run this command outside the sandbox?', "The agent's reason: it needs your key"],
  ]) {
    if (now.backend === 'off' && text === 'inside') continue;
    await say(page, text);
    await at(page, name).getByText(said).waitFor();
    await reject(question);
    await question.waitFor({ state: 'detached' });
    await idle(page);
  }
  await page.context().close();

  for (const options of [{}, { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }]) {
    const name = options.viewport ? 'phone' : 'desktop';
    const fake = await open({ options });
    await fake.route('**/api/approvals', (r) => r.fulfill({ json: ASKS }));
    await fake.route('**/api/mcp/servers', (r) => r.fulfill({ json: SERVERS }));
    await go(fake, 'approvals');
    const asks = fake.getByRole('region', { name: /^yaya asks/ });
    const texts = [];
    for (const a of ASKS) {
      await go(fake, 'approvals', a.id);
      await fake.locator(`.it[href$="/${a.id}"][aria-current]`).waitFor({ state: 'attached' });
      texts.push(await asks.innerText());
    }
    assert.match(texts[0], /In the sandbox: profile command \(landlock\)[^]*Not enforced: the network is off/);
    assert.doesNotMatch(texts[0], /outside the sandbox/);
    assert.match(texts[1], /The agent's reason: it needs your key[^]*outside the sandbox, with all rights of your user/);
    assert.match(texts[2], /outside the sandbox, with all rights of your user[^]*Sandbox: off, as the setting/);
    assert.match(texts[3], /May the command reach api\.example\.com:443\?[^]*curl https:\/\/api\.example\.com/);
    assert.match(texts[3], /Allow[^]*Allow in this session[^]*Refuse/);
    assert.doesNotMatch(texts[4], /In the sandbox/, 'a tool of a server speaks for yaya');
    await go(fake, 'approvals', 'a1');
    await at(fake, 'yaya asks: Run this command outside the sandbox?').waitFor();
    await shot(fake, `sandbox-asks-${name}`);
    await checked(fake, `questions, ${name}`);

    await go(fake, 'servers', 'bounded');
    await fake.getByRole('heading', { name: 'What it was kept from' }).waitFor();
    const said = await fake.locator('main').innerText();
    for (const part of ['reaches pypi.org', 'hidden files and hosts (namespaces)', 'memory is bounded for each process', 'was kept from reaching example.com:443', 'yaya mcp allow bounded --host example.com', 'belongs to yaya itself']) assert.ok(said.includes(part), `${part} is not in ${said}`);
    assert.equal(await fake.getByRole('group', { name: 'The command that allows bounded this' }).count(), 1);
    await shot(fake, `sandbox-server-${name}`);
    await checked(fake, `a server, ${name}`);
    for (const [name, text] of [['free', 'Outside the sandbox.'], ['lost', 'Nothing is enforced.']]) {
      await go(fake, 'servers', name);
      await heading(fake, name);
      await fake.locator('p.problem', { hasText: text }).waitFor();
    }
    await fake.context().close();
  }
});
