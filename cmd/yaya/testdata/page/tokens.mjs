// A lasting token is made on the page, shown once and revoked; a file with a mistake is
// a notice on every view, until it is mended.
import { act, assert, go, heading, open, run } from './lib.mjs';

await run(async () => {
  const page = await open();
  await go(page, 'devices');
  await heading(page, 'Devices');
  await page.getByText('There are no tokens.').waitFor();
  await page.getByRole('button', { name: 'Create a token' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('ci');
  assert.equal(await dialog.getByText('devices:manage').count(), 0, 'a scope that no token can have is offered');
  await dialog.getByRole('button', { name: 'Create', exact: true }).click();
  const token = await dialog.locator('.big code').innerText();
  assert.match(token, /^yaya_[0-9A-Z]{59}$/);
  await dialog.getByRole('button', { name: 'Done' }).click();
  const revoke = page.getByRole('button', { name: 'Revoke ci' });
  await revoke.waitFor();
  assert.ok(!(await page.content()).includes(token), 'the token is still on the page');
  assert.equal(await act('use', token), 'in');
  await revoke.click();
  await page.getByRole('button', { name: 'Revoke', exact: true }).last().click();
  await page.getByText('There are no tokens.').waitFor();
  assert.equal(await act('use', token), 'out');

  await act('break', '');
  const notice = page.getByRole('alert').filter({ hasText: 'has a mistake' });
  await notice.filter({ hasText: 'mcp.json' }).waitFor();
  await go(page, 'tools');
  await heading(page, 'Tools');
  await notice.waitFor();
  await act('mend', '');
  await notice.waitFor({ state: 'detached' });
});
