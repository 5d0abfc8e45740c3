import { assert, checked, go, heading, open, run, shot } from './lib.mjs';

await run(async () => {
  const page = await open();
  await go(page, 'tools');
  await heading(page, 'Tools');
  // What fits is found by what it does, best first.
  await page.getByLabel('Find tools').fill('add two numbers');
  await page.waitForFunction(() => document.querySelector('.rows a .mono')?.textContent.trim() === 'everything__get-sum');
  await checked(page, 'the tools');
  await shot(page, 'tools-desktop-light');
  await page.getByRole('link', { name: 'everything__get-sum' }).click();
  await heading(page, 'everything__get-sum');
  // Needed fields are checked before anything is called; numbers keep their digits.
  await page.getByRole('button', { name: 'Call it' }).click();
  await page.getByRole('alert').filter({ hasText: 'is needed' }).waitFor();
  await page.getByLabel(/^a/).fill('40');
  await page.getByLabel(/^b/).fill('2');
  await page.getByRole('button', { name: 'Call it' }).click();
  const result = page.getByRole('region', { name: 'Result' });
  await result.getByRole('group', { name: 'Result' }).getByText(/40 and 2 is 42/).waitFor();
  await page.getByLabel(/^a/).fill('forty');
  await page.getByRole('button', { name: 'Call it' }).click();
  await page.getByRole('alert').filter({ hasText: 'is not a number' }).waitFor();
  // The same as JSON.
  await page.getByLabel(/^a/).fill('1');
  await page.getByRole('button', { name: 'JSON' }).click();
  await page.getByLabel('Arguments (JSON)').fill('{"a":20,"b":3}');
  await page.getByRole('button', { name: 'Call it' }).click();
  await result.getByRole('group', { name: 'Result' }).getByText(/is 23/).waitFor();

  // A choice, a truth value.
  await go(page, 'tools', 'everything__get-annotated-message');
  await page.getByLabel(/messageType/).selectOption({ index: 1 });
  await page.getByRole('button', { name: 'Call it' }).click();
  await result.waitFor();
  await result.getByText('ok', { exact: true }).waitFor();

  // The server knows of the calls, and the page of the server, without being asked.
  await go(page, 'servers', 'everything');
  await page.getByRole('navigation', { name: 'Parts of the server' }).getByText(/^[1-9]\d*$/).waitFor();
  await page.getByText(/^[3-9] since yaya runs, 0 failed or refused; p50/).waitFor();
  await go(page, 'tools', 'nothing');
  await page.getByText('This tool is not offered now').waitFor();
});
