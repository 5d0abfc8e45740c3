// A server installs, and the page follows; another one fails, and its page says why.
import { act, assert, go, open, run } from './lib.mjs';

await run(async () => {
  const page = await open();
  const card = page.getByRole('region', { name: 'Servers', exact: true });
  await card.getByText('0 of 10 work, with 0 tools').waitFor();
  await card.getByRole('link', { name: '2 more' }).waitFor();
  await go(page, 'servers', 'bad');
  await page.getByText(/it said: error: no solution found for nope/).first().waitFor();
  assert.match(await page.getByRole('group', { name: 'The last lines of its standard error' }).innerText(), /Downloading cpython/);
  await go(page, 'servers');
  const slow = page.getByRole('row', { name: /slow/ });
  await slow.getByText('installing').waitFor();
  await page.getByRole('row').filter({ hasText: 'slow' }).locator('+ tr').getByText('npm http fetch GET 200 left-pad').waitFor();
  await act('go');
  await slow.getByText('ready').waitFor();
  assert.equal(await page.getByText('left-pad').count(), 0);
  await go(page, '');
  await card.getByText('1 of 10 work, with 1 tool').waitFor();
});
