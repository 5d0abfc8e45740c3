import { assert, env, go, heading, open, run } from './lib.mjs';

await run(async () => {
  const page = await open();
  await go(page, 'servers');
  await page.getByRole('main').getByRole('link', { name: 'Catalogue' }).click();
  await heading(page, 'Catalogue');
  await page.getByRole('searchbox', { name: 'Search the catalogue' }).fill('weather');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.getByText('io.github.sky/weather').waitFor();
  await page.getByRole('button', { name: 'Add Weather', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Add Weather' });
  await dialog.getByRole('radio', { name: /^remote/ }).check();
  const review = dialog.getByRole('button', { name: 'Review' });
  assert.equal(await review.isDisabled(), true); // the token is missing
  const token = dialog.getByLabel('token');
  assert.equal(await token.getAttribute('type'), 'password');
  await token.fill(env.secret);
  await review.click();
  const agree = page.getByRole('dialog', { name: 'This would run' });
  await agree.getByText(env.remote).first().waitFor();
  await agree.getByText('your own network').waitFor();
  assert.equal((await agree.innerText()).includes(env.secret), false);
  await agree.getByRole('button', { name: 'Approve' }).click();
  await heading(page, 'weather');
  await page.getByText('ready', { exact: true }).first().waitFor();
  // The first call is in Traffic.
  await go(page, 'tools', 'weather__forecast');
  await page.getByRole('button', { name: 'Call it' }).click();
  await page.getByRole('region', { name: 'Result' }).getByText('rain').waitFor();
  await go(page, 'traffic');
  await page.getByRole('listbox', { name: 'Calls, newest first' }).getByRole('option').filter({ hasText: 'forecast' }).first().waitFor();
  // It is known as added.
  await go(page, 'catalogue', 'weather');
  await page.getByRole('link', { name: 'Added' }).waitFor();
});
