// The first view: what is asked for before what, and how soon keys work.
import { assert, env, heading, launch, open, run, watch } from './lib.mjs';

const measured = async (locale) => {
  const first = [];
  const again = [];
  const keys = (page) => page.waitForFunction(() => performance.getEntriesByName('yaya:keys')[0]?.startTime).then((h) => h.jsonValue());
  for (let i = 0; i < 15; i++) {
    const context = await (await launch()).newContext({ locale });
    const page = watch(await context.newPage());
    await page.goto(env.base + '/');
    first.push(await keys(page));
    await page.locator('.sums').waitFor();
    await page.reload();
    again.push(await keys(page));
    await context.close();
  }
  for (const [name, all] of Object.entries({ first, again })) {
    all.sort((a, b) => a - b);
    console.log(`${locale}, ${name}: keys work after ${all.map((ms) => ms.toFixed(0)).join(' ')} ms`);
  }
};

await run(async () => {
  const page = await open({ at: 'robots.txt', allow: /status of 404/ });
  const asked = new Map();
  const once = (path) => {
    if (!asked.has(path)) asked.set(path, Promise.withResolvers());
    return asked.get(path);
  };
  page.on('request', (r) => once(new URL(r.url()).pathname).resolve());
  // Each of these waits until the next has been asked for, so it cannot wait for this one.
  await page.route('**/ui/app.js', async (r) => {
    await once('/api/me').promise;
    await r.continue();
  });
  await page.route('**/api/me', async (r) => {
    await once('/ui/overview.js').promise;
    await r.continue();
  });
  await page.goto(env.base + '/');
  await heading(page, 'Home');
  assert.equal(await page.evaluate(() => performance.getEntriesByName('yaya:keys').length), 1);
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  if (env.measure) for (const locale of ['en-US', 'zh-CN']) await measured(locale);
});
