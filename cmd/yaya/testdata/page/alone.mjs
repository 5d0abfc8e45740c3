// A yaya that is alone: what a cluster is for, how to begin one, and nothing else.
import { assert, checked, go, heading, open, run, shot } from './lib.mjs';

await run(async () => {
  for (const [name, options] of [['desktop', {}], ['phone', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }]]) {
    const page = await open({ options });
    await go(page, 'cluster');
    await heading(page, 'Cluster');
    await page.getByText('This yaya is alone.').waitFor();
    const commands = await page.locator('main .command pre').allInnerTexts();
    assert.deepEqual(commands.map((c) => c.trim()), ['yaya cluster init --listen HOST:PORT', 'yaya cluster init --nats URL']);
    assert.equal(await page.getByRole('button', { name: /Invite|Remove/ }).count(), 0);
    assert.equal(await page.locator('main table, main dl, main .badge').count(), 0, 'a state of what is not there is shown');
    await shot(page, `cluster-alone-${name}`);
    await checked(page, `alone, ${name}`);
    await page.context().close();
  }
});
