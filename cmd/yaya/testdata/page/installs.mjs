// From the catalogue to the first call: a server of npm, its values, what it would run, and its
// first call in Traffic.
import { act, assert, checked, env, go, heading, open, run, shot } from './lib.mjs';

await run(async () => {
  const page = await open({ allow: /status of 409/ }); // of a secret that is there meanwhile
  await go(page, 'catalogue');
  await heading(page, 'Catalogue');
  await page.getByRole('searchbox', { name: 'Search the catalogue' }).fill('files');
  await page.getByRole('searchbox', { name: 'Search the catalogue' }).press('Enter');
  await page.getByRole('button', { name: 'Add Files', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Add Files' });
  await dialog.getByLabel('folder', { exact: true }).fill(env.folder);
  const review = dialog.getByRole('button', { name: 'Review' });
  assert.equal(await review.isDisabled(), true, 'the key is missing');
  const key = dialog.getByLabel('FILES_KEY', { exact: true });
  assert.equal(await key.getAttribute('type'), 'password');
  await key.fill(env.secret);
  await dialog.getByLabel('FILES_MODE (optional)').selectOption('fancy');
  await dialog.getByLabel('Sandbox').selectOption('All of your files and hosts');
  const offer = dialog.getByRole('group', { name: 'Offer to' });
  assert.equal(await offer.getByLabel('MCP clients').isChecked(), true);
  await offer.getByLabel('yaya’s own agents').uncheck();
  await dialog.getByLabel('Calls of MCP clients').selectOption('yaya asks you about each');
  await checked(page, 'the values of a server');
  await shot(page, 'catalogue-install-desktop-light');
  await review.click();

  // What would run stands there whole, and nothing is written before the answer.
  const agree = page.getByRole('dialog', { name: 'This would run' });
  const runs = await agree.getByRole('group', { name: 'What files would run' }).innerText();
  assert.ok(runs.startsWith(env.runs), runs);
  assert.equal((await agree.innerText()).includes(env.secret), false);
  await agree.getByText('stores the secret files.FILES_KEY').waitFor();
  await agree.getByText('yaya’s own agents may not call its tools').waitFor();
  await agree.getByText('yaya asks you about each call of an MCP client.').waitFor();
  await checked(page, 'what would run');
  await shot(page, 'catalogue-agree-desktop-light');
  assert.deepEqual([await act('added'), await act('rules')], [false, []]);

  // A secret that somebody sets meanwhile stays, and what came with the change is taken back.
  await act('sets', 'files.FILES_KEY');
  await agree.getByRole('button', { name: 'Approve' }).click();
  await agree.getByText('the secret files.FILES_KEY was set since this was proposed').waitFor();
  assert.deepEqual([await act('added'), await act('rules')], [false, []]);
  await agree.getByRole('button', { name: 'Cancel' }).click();
  await review.click();
  await agree.getByText('stores the secret files.FILES_KEY.2').waitFor();
  await agree.getByRole('button', { name: 'Approve' }).click();
  await heading(page, 'files');
  await page.locator('.head').getByText('Ready').waitFor();
  assert.deepEqual(await act('rules'), [
    { provider: 'files', origin: 'loop', decision: 'deny' },
    { provider: 'files', origin: 'mcp', decision: 'ask' },
  ]);

  // Its first call is in Traffic, with its result.
  await page.getByRole('navigation', { name: 'Parts of the server' }).getByRole('link', { name: /^Tools/ }).click();
  await page.getByRole('link', { name: 'list_allowed_directories', exact: true }).click();
  await page.getByRole('button', { name: 'Call it' }).click();
  await page.getByRole('region', { name: 'Result' }).getByText(env.folder).first().waitFor();
  await go(page, 'traffic');
  const call = page.getByRole('listbox', { name: 'Calls, newest first' }).getByRole('option').filter({ hasText: 'list_allowed_directories' });
  await call.waitFor();
  assert.match(await call.innerText(), /files/);
  await call.click();
  await page.getByText(env.folder).first().waitFor();
});
