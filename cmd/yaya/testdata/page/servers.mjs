// Servers: added with a form, and seen before they run; tools that are switched; logs that are
// followed; a change, a switch and a removal.
import { act, assert, checked, env, firstSeen, go, heading, open, run, shot } from './lib.mjs';

const tools = async () => (await (await fetch(env.base + '/api/tools')).json()).filter((t) => t.provider === 'fs').map((t) => t.tool);

await run(async () => {
  const page = await open({ allow: /status of 4(00|09|22)/ }); // of a change that is refused
  await go(page, 'servers');
  const row = (name) => page.getByRole('row').filter({ hasText: name });
  await row('broken').getByText('Failed').waitFor();
  await row('off').getByText('Disabled').waitFor();

  // A reason has a line of its own, as wide as the list.
  const reason = await page.locator('.why td').first().boundingBox();
  assert.ok(reason.width > 600 && reason.height < 60, JSON.stringify(reason));

  // The list is filtered, in part and by name.
  const shown = async () => page.locator('tbody tr:not(.why)').count();
  assert.equal(await shown(), 2);
  await page.getByRole('button', { name: 'Trouble 1' }).click();
  assert.equal(await shown(), 1);
  await page.getByRole('button', { name: 'All 2' }).click();
  await page.getByRole('searchbox', { name: 'Filter servers' }).fill('nothing');
  await page.getByText('No servers match.').waitFor();
  await page.getByRole('searchbox', { name: 'Filter servers' }).fill('');

  // One is added: a form, what would run, and only then it runs.
  await page.getByRole('link', { name: 'Add a server' }).click();
  await heading(page, 'Add a server');
  await page.getByLabel('Name', { exact: true }).fill('fs');
  await page.getByLabel('Command', { exact: true }).fill(env.command);
  for (const [i, a] of env.args.entries()) {
    await page.getByRole('button', { name: 'Add an argument' }).click();
    await page.getByLabel(`Argument ${i + 1}`, { exact: true }).fill(a);
  }
  await page.getByRole('button', { name: 'Add a variable' }).click();
  await page.getByLabel('Name of variable 1').fill('API_TOKEN');
  await page.getByLabel('Value of API_TOKEN').fill('sk-canary-123456');
  await checked(page, 'the form');
  await page.getByRole('button', { name: 'JSON' }).click();
  const json = page.getByRole('textbox', { name: 'JSON' });
  assert.deepEqual(JSON.parse(await json.inputValue()), { command: env.command, args: env.args, env: { API_TOKEN: 'sk-canary-123456' } });
  await page.getByRole('button', { name: 'Form' }).click();
  const first = await firstSeen(page, 'Approve');
  await page.getByRole('button', { name: 'Review', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'This would run' });
  const runs = await dialog.getByRole('group', { name: 'What fs would run' }).innerText();
  assert.ok(runs.includes(env.args.at(-1)) && !runs.includes('canary'), runs);
  assert.ok((await first()).disabled, 'what was clicked before it could be read is no answer');
  assert.deepEqual(await tools(), [], 'it runs before somebody has agreed');
  await dialog.getByRole('button', { name: 'Approve' }).click();
  await heading(page, 'fs');
  await page.locator('.head').getByText('Ready').waitFor();
  await checked(page, 'the overview');

  // Its tools, with a switch each: what is switched off is offered to nobody, and stays so.
  await page.getByRole('navigation', { name: 'Parts of the server' }).getByRole('link', { name: /^Tools/ }).click();
  const write = page.getByRole('switch', { name: 'Offer write_file' });
  assert.equal(await write.isChecked(), true);
  await checked(page, 'the tools');
  await write.click();
  await page.waitForFunction(() => document.querySelector('[aria-label="Offer write_file"]')?.checked === false);
  await page.getByRole('listitem').filter({ hasText: 'write_file' }).getByText('Not offered').waitFor();
  await page.getByRole('switch', { name: 'Offer read_file' }).waitFor();
  assert.ok(!(await tools()).includes('write_file'));
  assert.deepEqual(JSON.parse(await act('file')).mcpServers.fs.disabled_tools, ['write_file']);
  await write.click();
  await page.waitForFunction(() => document.querySelector('[aria-label="Offer write_file"]')?.checked);
  assert.ok((await tools()).includes('write_file'));

  // Its output, as it comes; paused, it stands still.
  await go(page, 'servers', 'fs', 'logs');
  const log = page.getByRole('log', { name: 'Output of the server' });
  await log.getByText('Secure MCP Filesystem Server running on stdio').first().waitFor();
  const lines = () => log.getByText('ready', { exact: true }).count();
  const before = await lines();
  await page.getByRole('button', { name: 'Restart' }).click();
  await page.waitForFunction((n) => [...document.querySelectorAll('.logs span')].filter((s) => s.textContent === 'ready').length > n, before);
  await checked(page, 'the logs');
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText('paused').waitFor();
  await page.getByRole('button', { name: 'Errors' }).click();
  await page.getByText('No lines of that level.').waitFor();

  // A change: what would run, with its secret kept and never shown.
  await go(page, 'servers', 'fs', 'config');
  assert.equal(await page.getByLabel('Value of API_TOKEN').inputValue(), '****');
  const last = page.getByLabel(`Argument ${env.args.length}`, { exact: true });
  await last.fill(env.other);
  await page.getByText('not saved').waitFor();
  await page.getByRole('button', { name: 'Discard' }).click();
  assert.equal(await last.inputValue(), env.args.at(-1));
  await last.fill(env.other);
  await page.getByRole('button', { name: 'Review change' }).click();
  await page.getByRole('alert').filter({ hasText: 'enter the secret again' }).waitFor(); // it stays with its command
  await page.getByLabel('Value of API_TOKEN').fill('sk-canary-654321');
  await page.getByRole('button', { name: 'Review change' }).click();
  assert.ok((await dialog.getByRole('group', { name: 'What fs would run' }).innerText()).includes(env.other));
  await dialog.getByRole('button', { name: 'Approve' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.getByText('not saved').waitFor({ state: 'detached' });
  await page.waitForFunction(() => document.querySelector('[aria-label="Value of API_TOKEN"]').value === '****');
  const entry = JSON.parse(await act('file')).mcpServers.fs;
  assert.deepEqual([entry.args.at(-1), entry.env.API_TOKEN], [env.other, 'sk-canary-654321']);
  await shot(page, 'server-config-desktop-light');

  // Off, on, and gone.
  await page.getByRole('button', { name: 'Turn off' }).click();
  await page.getByRole('button', { name: 'Turn on' }).waitFor();
  assert.deepEqual(await tools(), []);
  await page.getByRole('button', { name: 'Turn on' }).click();
  await page.getByRole('button', { name: 'Turn off' }).waitFor();
  await go(page, 'servers', 'fs', 'trust');
  await page.getByText('No changes wait for approval.').waitFor();
  await go(page, 'servers', 'fs', 'config');
  await page.getByRole('button', { name: 'Remove server' }).click();
  await page.getByRole('dialog', { name: 'Remove server' }).getByRole('button', { name: 'Remove server' }).click();
  await heading(page, 'Servers');
  await row('fs').waitFor({ state: 'detached' });
  assert.equal(JSON.parse(await act('file')).mcpServers.fs, undefined);
});
