// Browse the catalogue: a registry that fails is told, one whose cursors go round ends, and those
// after it follow.
import { assert, env, go, heading, open, run } from './lib.mjs';

await run(async () => {
  const page = await open();
  await go(page, 'catalogue');
  await heading(page, 'Catalogue');
  const more = page.getByRole('button', { name: 'Show more' });
  await more.click();
  await page.getByRole('alert').getByText('The registry down gave no usable answer').waitFor();
  if (env.alone) {
    await more.waitFor({ state: 'detached' });
    return;
  }
  for (let i = 0; i < 3; i++) { // two pages of one server, and the last registry
    await Promise.all([page.waitForResponse(/cursor=/), more.click()]);
  }
  await more.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Add Weather' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Add io.github.sea/storms' }).count(), 1);
});
