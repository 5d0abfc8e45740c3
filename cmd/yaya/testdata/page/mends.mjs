// A server that fails: why, the line of its output, its entry mended in the form, a call.
import { assert, checked, env, go, heading, open, run } from './lib.mjs';

await run(async () => {
  const page = await open();
  const needs = page.getByRole('region', { name: 'Needs you' });
  await needs.getByRole('link', { name: 'Open: fs failed' }).click();
  await heading(page, 'fs');
  const head = page.locator('.head');
  await head.getByText('Failed').waitFor();
  assert.match(await head.innerText(), /accessible|directory/i, 'the page says why');
  await checked(page, 'a server that fails');

  const parts = page.getByRole('navigation', { name: 'Parts of the server' });
  await parts.getByRole('link', { name: 'Logs' }).click();
  const log = page.getByRole('log', { name: 'Output of the server' });
  await log.getByText(env.gone).first().waitFor();

  await parts.getByRole('link', { name: 'Configuration' }).click();
  const folder = page.getByLabel('Argument 2', { exact: true });
  assert.equal(await folder.inputValue(), env.gone);
  await folder.fill(env.folder);
  await page.getByRole('button', { name: 'Review change' }).click();
  const dialog = page.getByRole('dialog', { name: 'This would run' });
  assert.ok((await dialog.getByRole('group', { name: 'What fs would run' }).innerText()).includes(env.folder));
  await dialog.getByRole('button', { name: 'Approve' }).click();
  await dialog.waitFor({ state: 'detached' });
  await parts.getByRole('link', { name: 'Overview' }).click();
  await head.getByText('Ready').waitFor();

  await go(page, 'tools', 'fs__list_directory');
  await page.getByLabel(/^path/).fill(env.folder);
  await page.getByRole('button', { name: 'Call it' }).click();
  await page.getByRole('region', { name: 'Result' }).getByText('a.txt').first().waitFor();
  await go(page, '');
  await heading(page, 'Home');
  await page.locator('.sums').waitFor();
  await needs.waitFor({ state: 'detached' });
});
