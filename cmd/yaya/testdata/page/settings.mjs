// Settings: an editor for each type, those of this browser, commands for them; and the audit of it
// all, with filters, pages and an export.
import { readFileSync } from 'node:fs';
import { assert, checked, env, go, heading, open, run, shot } from './lib.mjs';

const value = async (key) => (await (await fetch(`${env.base}/api/config/${key}`)).json()).value;
const set = async (key, v) => {
  const r = await fetch(`${env.base}/api/config/${key}`, { method: 'PATCH', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ value: v }) });
  assert.equal(r.status, 200, key);
};

await run(async () => {
  const page = await open({ allow: /status of 400/ }); // of values that are refused
  await go(page, 'config');
  await heading(page, 'Settings');
  const row = (key) => page.getByRole('listitem').filter({ has: page.locator('code', { hasText: new RegExp(`^${key}$`) }) });
  const dialog = page.getByRole('dialog');
  const change = async (key, fill) => {
    await page.getByRole('button', { name: `Change ${key}`, exact: true }).click();
    await fill(dialog.getByLabel('Value'));
    await dialog.getByRole('button', { name: 'Save' }).click();
  };

  // A switch, a choice, a number, a list, a duration that is refused.
  await page.getByRole('switch', { name: 'compaction.enabled' }).click();
  await row('compaction.enabled').getByText('set here').waitFor();
  assert.equal(await value('compaction.enabled'), false);
  await change('log.level', (f) => f.selectOption('error'));
  await row('log.level').getByText('error', { exact: true }).waitFor();
  await change('loop.max_iterations', (f) => f.fill('many'));
  await dialog.getByRole('alert').filter({ hasText: 'The value must be a number.' }).waitFor();
  await checked(page, 'an editor with a mistake');
  await dialog.getByLabel('Value').fill('77');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await row('loop.max_iterations').getByText('77', { exact: true }).waitFor();
  await change('sandbox.command.hosts', (f) => f.fill('example.com\n\n*.example.org:8443\n'));
  await row('sandbox.command.hosts').getByText('example.com, *.example.org:8443').waitFor();
  assert.deepEqual(await value('sandbox.command.hosts'), ['example.com', '*.example.org:8443']);
  await change('loop.llm_timeout', (f) => f.fill('soon'));
  await dialog.getByRole('alert').waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  assert.equal(await value('loop.llm_timeout'), '10m');
  await page.getByRole('button', { name: 'Unset log.level' }).click();
  await dialog.getByRole('button', { name: 'Unset' }).click();
  await row('log.level').getByText('warn', { exact: true }).waitFor();

  // Filters.
  await page.getByRole('searchbox', { name: 'Filter settings' }).fill('retention');
  await page.getByRole('region', { name: 'Access' }).waitFor({ state: 'detached' });
  await row('retention.archives').waitFor();
  await page.getByRole('searchbox', { name: 'Filter settings' }).fill('');
  await page.getByRole('button', { name: 'Changed' }).click();
  await row('retention.archives').waitFor({ state: 'detached' });
  await row('loop.max_iterations').waitFor();
  await page.getByRole('button', { name: 'All', exact: true }).click();

  // This browser.
  const own = page.getByRole('region', { name: 'This browser' });
  await own.getByRole('button', { name: 'Dark' }).click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  await checked(page, 'settings, dark');
  await own.getByRole('switch', { name: 'Single keys' }).click();
  await page.locator('main').focus();
  await page.keyboard.press('g');
  await page.keyboard.press('h');
  assert.match(page.url(), /#\/config$/);
  await own.getByRole('button', { name: '中文' }).click();
  await heading(page, '设置');
  await page.getByRole('region', { name: '此浏览器' }).getByRole('button', { name: 'English' }).click();
  await heading(page, 'Settings');

  // The same as commands.
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search or run' }).fill('theme light');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'light');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search or run' }).fill('language');
  await page.keyboard.press('Enter');
  await heading(page, '设置');
  await page.getByRole('button', { name: 'English' }).click();
  await heading(page, 'Settings');

  // The audit.
  for (let i = 0; i < 110; i++) await set('loop.max_iterations', 100 + i);
  await go(page, 'audit');
  await heading(page, 'Audit');
  const entries = page.locator('.entries .entry .what');
  await entries.filter({ hasText: /owner set loop\.max_iterations/ }).first().waitFor();
  assert.equal(await entries.count(), 100);
  await page.getByRole('button', { name: 'Earlier entries' }).click();
  await entries.nth(110).waitFor();
  await entries.filter({ hasText: /owner unset log\.level/ }).waitFor();
  await page.getByLabel('To what').fill('log.level');
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll('.entries .entry').length === 2);
  await page.getByRole('button', { name: '1 h', exact: true }).click();
  assert.match(decodeURIComponent(page.url()), /#\/audit\/target\/log\.level\/last\/60$/);
  await page.reload();
  await entries.nth(1).waitFor();
  assert.equal(await entries.count(), 2);
  await checked(page, 'the audit');
  await shot(page, 'audit-filtered');
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export' }).click();
  const lines = readFileSync(await (await download).path(), 'utf8').trim().split('\n').map((l) => JSON.parse(l));
  assert.deepEqual(lines.map((l) => l.event), ['config_changed', 'config_removed']);
  await page.getByLabel('Who').fill('nobody');
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await page.getByText('No entries match.').waitFor();
});
