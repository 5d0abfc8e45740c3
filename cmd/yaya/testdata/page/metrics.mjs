// Metrics: plots that mark one moment together and are read with the keys, windows, and the way
// from each number to its calls.
import { assert, checked, env, go, heading, open, run, shot } from './lib.mjs';

const call = async (tool) => {
  const r = await fetch(`${env.base}/api/tools/${tool}/call`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ arguments: {} }) });
  assert.equal(r.status, 200, tool);
};

await run(async () => {
  for (const tool of ['srv__good', 'srv__good', 'srv__bad']) await call(tool);
  const page = await open();
  await go(page, 'metrics');
  await heading(page, 'Metrics');
  for (const name of ['Calls', 'Time to answer', 'Memory', 'CPU', 'Servers and sessions', 'Tokens a minute']) await page.getByRole('region', { name, exact: true }).waitFor();
  const calls = page.getByRole('region', { name: 'Calls', exact: true });
  await calls.locator('.legend').getByText('2', { exact: true }).waitFor();
  await page.getByRole('region', { name: 'Memory' }).locator('.legend').getByText(/MiB$/).waitFor();

  // One moment in all plots; only the one with the focus reads it out.
  const plot = calls.getByRole('group');
  await plot.focus();
  await page.keyboard.press('End');
  await page.keyboard.press('ArrowLeft');
  await calls.locator('.tip').waitFor();
  for (let i = 0; i < 10 && !/answered 2, failed 1/.test(await calls.getByRole('status').innerText()); i++) await page.keyboard.press('ArrowLeft');
  assert.match(await calls.getByRole('status').innerText(), /answered 2, failed 1/);
  assert.equal(await page.locator('.cross').count(), 6, 'a plot does not mark the moment');
  assert.equal(await page.locator('.tip').count(), 1);
  await checked(page, 'metrics');
  await shot(page, 'metrics-plots');
  await page.keyboard.press('Enter');
  await heading(page, 'Traffic');
  assert.match(decodeURIComponent(page.url()), /#\/traffic\/since:\S+ until:\S+$/);
  await page.getByText(/^Calls from/).waitFor();
  await page.getByRole('option').nth(2).waitFor();
  assert.equal(await page.getByRole('option').count(), 3);
  await page.goBack();
  await heading(page, 'Metrics');
  await plot.focus();
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.cross').count(), 0);

  // By server and by tool, and from there to the calls.
  const row = page.getByRole('row').filter({ hasText: 'srv' });
  await row.getByRole('cell', { name: '3', exact: true }).waitFor();
  await row.getByRole('link', { name: '33.3 %' }).click();
  await heading(page, 'Traffic');
  assert.match(decodeURIComponent(page.url()), /#\/traffic\/server:srv failed last:30$/);
  await page.getByRole('option').first().waitFor();
  assert.equal(await page.getByRole('option').count(), 1);
  await page.goBack();
  await page.getByRole('button', { name: 'Tool', exact: true }).click();
  await page.getByRole('link', { name: 'srv__bad' }).waitFor();

  // The windows, of which the longest is made of the daily sums; one server.
  for (const [name, at] of [['24 h', '24h'], ['7 d', '7d'], ['30 d', '30d']]) {
    await page.getByRole('button', { name, exact: true }).click();
    assert.match(page.url(), new RegExp(`#/metrics/${at}$`));
    await page.getByRole('row').filter({ hasText: 'srv__good' }).getByRole('cell', { name: '2', exact: true }).waitFor();
    await calls.locator('.legend').getByText('2', { exact: true }).waitFor();
  }
  await page.getByRole('combobox', { name: 'Server' }).selectOption('srv');
  assert.match(page.url(), /#\/metrics\/30d\/srv$/);
  await page.getByRole('region', { name: 'Memory' }).waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'srv__good' }).click();
  await heading(page, 'Traffic');
  await page.getByRole('option').nth(1).waitFor();
  assert.equal(await page.getByRole('option').count(), 2);
});
