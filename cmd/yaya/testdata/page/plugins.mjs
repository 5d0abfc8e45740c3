// Plugins with their permissions, health and source, hooks and skills: a guard that does not work
// is seen at once, and a reload starts it again.
import { act, assert, checked, env, go, heading, open, run, shot } from './lib.mjs';

const EVIL = '<img src=x onerror="document.title=1">\u202egnp.exe';
const HOSTILE = {
  plugins: {
    plugins: [
      { name: 'evil', category: 'tool', version: '1.0.0', status: 'failed', enabled: true, bundled: false, error: EVIL, guards: ['pre_tool', 'prompt', EVIL], config_schema: null, current_config: { x: EVIL },
        package: { source: EVIL, editable: true, digest: EVIL, installed: new Date().toISOString(), description: EVIL, runs: [EVIL, 'y'.repeat(500)], requires: [EVIL], gets: [EVIL], permissions: [EVIL, 'reads ' + '/x'.repeat(300)], problem: EVIL } },
      { name: 'part', category: 'skill', version: '1.0.0', status: 'loaded', enabled: true, bundled: true, config_schema: null, current_config: {} },
    ],
  },
  doctor: [{ plugin: 'evil', status: 'failed', summary: EVIL, details: [{ name: EVIL, status: 'degraded', message: EVIL }] }],
  hooks: { hooks: [{ name: EVIL, event: 'pre_tool', tool: EVIL, command: EVIL, timeout_ms: 10000, file: EVIL }], ignored: [EVIL], problem: EVIL, denies: true },
  skills: { skills: [{ name: EVIL, description: EVIL, folder: EVIL, project: true, manual: true, shadowed_by: EVIL, warnings: [EVIL] }], broken: [{ folder: EVIL, reason: EVIL }] },
};

await run(async () => {
  const page = await open({ allow: /status of 500/ }); // of a reload that fails
  await heading(page, 'Home');
  await page.getByRole('link', { name: 'Plugins' }).click();
  await heading(page, 'Plugins');
  const installed = page.getByRole('region', { name: 'Installed plugins' });
  const row = installed.getByRole('row').filter({ hasText: 'watch' });
  await row.getByText('guards calls of tools').waitFor();
  await row.getByText('loaded').waitFor();
  await row.getByText('ok', { exact: true }).waitFor();
  await page.getByRole('region', { name: 'Parts of yaya' }).getByText('memory-sqlite').waitFor();
  const hook = page.getByRole('region', { name: 'Hooks' }).getByRole('row').filter({ hasText: 'no-push' });
  const said = await hook.innerText();
  for (const part of ['pre_tool', 'shell', 'grep -q push', 'hooks.toml', '10.0 s']) assert.ok(said.includes(part), `${part} is not in ${said}`);
  await page.getByRole('region', { name: 'Skills' }).getByText('Writes release notes.').waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
  await shot(page, 'plugins');
  await checked(page, 'the view');

  // One plugin: all that a person was shown before the installation.
  await row.getByRole('link', { name: 'watch' }).click();
  await heading(page, 'watch');
  const all = await page.locator('main').innerText();
  for (const part of ['guards calls of tools: it sees each with its arguments', 'reaches the host api.example.com', env.source, 'python3 main.py', 'Editable', 'Watches calls.']) assert.ok(all.includes(part), `${part} is not in ${all}`);
  await checked(page, 'a plugin');
  const pid = await act('pid');
  await page.getByRole('button', { name: 'Reload' }).click();
  await page.locator('button:enabled', { hasText: 'Reload' }).waitFor();
  assert.notEqual(await act('pid'), pid);
  assert.equal(await act('reloads'), 1);

  // It breaks while it is looked at, and a reload says why it does not start.
  await act('break');
  await page.locator('main .state', { hasText: 'failed' }).first().waitFor();
  await page.getByRole('button', { name: 'Reload' }).click();
  await page.getByRole('alert').filter({ hasText: 'no license' }).waitFor();
  await go(page, 'plugins');
  await page.getByRole('alert').filter({ hasText: 'watch guards calls of tools and does not work: they are denied.' }).waitFor();
  await shot(page, 'plugins-failed');
  await act('mend');
  await go(page, 'plugins', 'watch');
  await page.getByRole('button', { name: 'Reload' }).click();
  await page.locator('main .state', { hasText: 'loaded' }).first().waitFor();
  await go(page, 'plugins');
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await go(page, 'plugins', 'memory-sqlite');
  await heading(page, 'memory-sqlite');
  assert.equal(await page.getByRole('button', { name: 'Reload' }).count(), 0, 'a part of yaya has a reload');
  await go(page, 'plugins', 'nothing');
  await page.getByText('Plugin not found.').waitFor();
  await page.context().close();

  for (const options of [{}, { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }]) {
    const name = options.viewport ? 'phone' : 'desktop';
    const fake = await open({ options });
    await heading(fake, 'Home');
    await fake.route('**/api/plugins', (r) => r.fulfill({ json: HOSTILE.plugins }));
    await fake.route('**/api/doctor', (r) => r.fulfill({ json: HOSTILE.doctor }));
    await fake.route('**/api/hooks', (r) => r.fulfill({ json: HOSTILE.hooks }));
    await fake.route('**/api/skills', (r) => r.fulfill({ json: HOSTILE.skills }));
    await go(fake, 'plugins');
    await fake.getByText('Calls of tools are denied, since hooks cannot be read:').waitFor();
    assert.ok((await fake.locator('main').innerText()).includes('\\u{202e}'), 'the mark that turns text around is not shown');
    await shot(fake, `plugins-hostile-${name}`);
    await checked(fake, `hostile texts, ${name}`);
    await go(fake, 'plugins', 'evil');
    await fake.getByRole('heading', { name: 'Permissions' }).waitFor();
    await checked(fake, `a hostile plugin, ${name}`);
    assert.equal(await fake.locator('main img').count(), 0);
    assert.equal(await fake.title(), 'evil · yaya');
    await fake.context().close();
  }

  // Who may only look has no button.
  const reader = await open({ at: 'robots.txt', allow: /./ });
  await reader.route('**/api/me', async (r) => {
    const got = await (await r.fetch()).json();
    await r.fulfill({ json: { ...got, scopes: got.scopes.filter((s) => s !== 'config:write') } });
  });
  await reader.goto(env.base + '/#/plugins/watch');
  await heading(reader, 'watch');
  await reader.getByRole('heading', { name: 'Permissions' }).waitFor();
  assert.equal(await reader.getByRole('button', { name: 'Reload' }).count(), 0);
});
