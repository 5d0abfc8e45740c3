// Traffic: calls as they end, filters that stay in the address, a call with its arguments and
// result, the same call again, and a list of ten thousand.
import { readFileSync } from 'node:fs';
import { assert, checked, env, firstSeen, go, heading, open, run, shot } from './lib.mjs';

const call = async (tool, args = {}) => {
  const r = await fetch(`${env.base}/api/tools/${tool}/call`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ arguments: args }) });
  assert.equal(r.status, 200, tool);
};

await run(async () => {
  await call('srv__good', { n: 1 });
  await call('srv__bad', { n: 2 });
  await call('srv__good', { n: 3, token: 'sk-canary-123456' });
  const page = await open();
  await go(page, 'traffic');
  await heading(page, 'Traffic');
  const list = page.getByRole('listbox', { name: 'Calls, newest first' });
  const option = list.getByRole('option');
  await option.nth(2).waitFor();
  assert.equal(await option.count(), 3);
  await option.nth(1).getByText('Tool error').waitFor();

  // One that ends while somebody looks comes first; while the pointer is there, it waits.
  await call('srv__good', { n: 4 });
  await option.nth(3).waitFor();
  await list.hover();
  await call('srv__good', { n: 5 });
  await page.getByRole('button', { name: '1 new call' }).click();
  await option.nth(4).waitFor();
  assert.equal(await option.count(), 5);

  // With the keys: to a call, into it, and back.
  await list.focus();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  const drawer = page.getByRole('region', { name: 'Call' });
  const args = drawer.getByRole('group', { name: 'Arguments of the call' });
  await args.waitFor();
  assert.deepEqual(JSON.parse(await args.innerText()), { n: 4 });
  assert.match(await drawer.getByRole('group', { name: 'Result of the call' }).innerText(), /good/);
  await drawer.getByText('The call counts as approved by its caller').waitFor();
  assert.ok(!(await drawer.innerText()).includes('_bridge:'), 'the session of the page has its own name');
  await checked(page, 'a call');
  await shot(page, 'traffic-call-desktop-light');
  assert.match(page.url(), /#\/traffic\/\/\d+$/);
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'detached' });
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('role')), 'listbox');

  // Filters, in the address.
  await page.getByRole('button', { name: 'Failed', exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll('[role=option]').length === 1);
  assert.match(decodeURIComponent(page.url()), /#\/traffic\/failed$/);
  await page.reload();
  await option.first().waitFor();
  assert.equal(await option.count(), 1);
  await page.getByLabel('Tool', { exact: true }).fill('good');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.getByText('No calls match.').waitFor();
  await page.getByRole('button', { name: 'All calls' }).click();
  await option.nth(3).waitFor();
  assert.equal(await option.count(), 4);
  await page.getByRole('button', { name: '1 h', exact: true }).click();
  await option.nth(3).waitFor();
  assert.match(decodeURIComponent(page.url()), /#\/traffic\/tool:good last:60$/);

  // The export has the calls that match, whole.
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export' }).click();
  const lines = readFileSync(await (await download).path(), 'utf8').trim().split('\n').map((l) => JSON.parse(l));
  assert.deepEqual(lines.map((l) => JSON.parse(l.arguments).n), [1, 3, 4, 5]);

  // The same call again: shown whole before, armed late, and recorded as a call of its own.
  await option.first().click();
  await args.waitFor();
  const first = await firstSeen(page, 'Call it again');
  await drawer.getByRole('button', { name: 'Replay' }).click();
  const dialog = page.getByRole('dialog', { name: 'Call it again' });
  assert.deepEqual(JSON.parse(await dialog.getByRole('group', { name: 'Arguments, all of them' }).innerText()), { n: 5 });
  assert.ok((await first()).disabled, 'what was clicked before it could be read is no answer');
  await dialog.getByRole('button', { name: 'Call it again' }).click();
  await page.getByRole('status').filter({ hasText: /^The call took/ }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll('[role=option]').length === 5 || document.querySelector('.fresh'));

  // One whose arguments hold a secret is not: the record has a mask in its place.
  await go(page, 'traffic', '', '3');
  await args.filter({ hasText: '****' }).waitFor();
  assert.ok(await drawer.getByRole('button', { name: 'Replay' }).isDisabled());
  await drawer.getByText('The arguments hold a secret, which is not recorded.').waitFor();

  // Ten thousand calls, of which the document has the visible ones.
  const many = await open({ at: 'robots.txt', allow: /./ });
  const all = Array.from({ length: 10_000 }, (_, i) => ({ id: i + 1, time: new Date(Date.UTC(2026, 0, 1) + i * 1000).toISOString(), took_ms: i % 900, origin: 'mcp', method: 'tools/call', server: 'srv', tool: `tool_${i + 1}`, outcome: i % 9 ? 'ok' : 'timeout', arguments_bytes: 2, result_bytes: i }));
  await many.route('**/api/traffic?**', (r) => {
    const q = new URL(r.request().url()).searchParams;
    const end = Number(q.get('before') ?? 10_001) - 1;
    const begin = Math.max(0, end - Number(q.get('limit')));
    return r.fulfill({ json: { calls: all.slice(begin, end), more: begin > 0, lost: { busy: 0, failed: 0, bare: 0 }, bodies: 'all' } });
  });
  await many.goto(env.base + '/#/traffic');
  const rows = many.getByRole('option');
  await rows.filter({ hasText: 'tool_10000' }).waitFor();
  await many.waitForFunction(() => {
    const b = document.querySelector('.scroller');
    b.scrollTop = b.scrollHeight;
    return document.querySelector('.calls > .foot').textContent.startsWith('10000 calls');
  });
  await many.evaluate(() => { const b = document.querySelector('.scroller'); b.scrollTop = b.scrollHeight; });
  await rows.getByText('tool_1', { exact: true }).waitFor();
  assert.ok((await rows.count()) < 100, `${await rows.count()} rows are in the document`);
  await many.evaluate(() => { document.querySelector('.scroller').scrollTop = 0; });
  await rows.filter({ hasText: 'tool_10000' }).waitFor();
});
