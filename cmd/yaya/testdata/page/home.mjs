// Home: what needs somebody comes first, and the traffic of the last hour follows the calls.
import { act, assert, checked, env, go, heading, newSession, open, reject, run, say, shot } from './lib.mjs';

const call = async (tool) => {
  const r = await fetch(`${env.base}/api/tools/${tool}/call`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"arguments":{}}' });
  assert.equal(r.status, 200, tool);
};

await run(async () => {
  for (let i = 0; i < 3; i++) await call('srv__good');
  await call('srv__bad');
  const page = await open();
  await heading(page, 'Home');
  const needs = page.getByRole('region', { name: 'Needs you' });
  const row = (text) => needs.getByRole('listitem').filter({ hasText: text });
  await row('broken failed').getByRole('link', { name: 'Open: broken failed' }).waitFor();
  const sum = (name) => page.locator('.sums > a').filter({ hasText: name });
  await sum('Calls, last hour').getByText('4', { exact: true }).waitFor();
  await sum('Failed').getByText('25.0 %').waitFor();
  await sum('Failed').getByText('1 of 1 in srv').waitFor();
  await sum('Servers ready').getByText('of 2').waitFor();
  const last = page.getByRole('region', { name: 'Last calls' });
  assert.equal(await last.getByRole('listitem').count(), 4);

  // A call while somebody looks; what it does to the sums.
  await call('srv__bad');
  await page.waitForFunction(() => document.querySelectorAll('[aria-label="Last calls"] li').length === 5);
  await sum('Calls, last hour').getByText('5', { exact: true }).waitFor();
  await sum('Failed').getByText('40.0 %').waitFor();

  // The plot is read with the keys.
  const plot = page.getByRole('group', { name: /^Calls by minute in the last hour/ });
  await plot.focus();
  const spoken = page.getByRole('region', { name: 'Calls' }).getByRole('status');
  const values = [];
  for (let i = 0; i < 3; i++) {
    await page.keyboard.press('ArrowLeft');
    values.push(await spoken.innerText());
  }
  assert.ok(values.every((v) => /answered \d+, failed \d+$/.test(v)), String(values));
  await checked(page, 'with a plot that is read');
  await page.keyboard.press('Escape');

  // An approval comes first, and leads to its answer.
  await newSession(page);
  await say(page, 'ask');
  await go(page, '');
  await row('shell waits for your approval').waitFor();
  assert.match(await needs.getByRole('listitem').first().innerText(), /^shell/);
  await shot(page, 'home-needs-desktop-light');
  await row('shell').getByRole('link', { name: /^Review/ }).click();
  await heading(page, 'Approvals');
  await reject(page.getByRole('region', { name: /^yaya asks/ }));
  await page.getByText('No calls wait for approval.').waitFor();

  // When nothing needs anybody, the box is gone.
  await act('mend');
  await go(page, '');
  await heading(page, 'Home');
  await needs.waitFor({ state: 'detached' });

  // Who may not see the audit sees no calls, and is not asked for them.
  const reader = await open({ at: 'robots.txt', allow: /./ });
  const asked = [];
  reader.on('request', (r) => asked.push(r.url()));
  await reader.route('**/api/me', async (r) => {
    const got = await (await r.fetch()).json();
    await r.fulfill({ json: { ...got, scopes: got.scopes.filter((s) => s !== 'audit:read') } });
  });
  await reader.goto(env.base + '/');
  await heading(reader, 'Home');
  await reader.getByRole('region', { name: 'Servers', exact: true }).waitFor();
  await reader.locator('.sums').waitFor();
  assert.equal(await reader.getByRole('region', { name: 'Last calls' }).count(), 0);
  assert.deepEqual(asked.filter((u) => u.includes('/api/traffic')), []);
});
