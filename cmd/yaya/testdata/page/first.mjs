// The first view: what is asked for before what, and how soon keys work.
import { assert, env, go, heading, launch, open, run, watch } from './lib.mjs';

const measured = async (locale) => {
  const first = [];
  const again = [];
  const keys = (page) => page.waitForFunction(() => performance.getEntriesByName('yaya:keys')[0]?.startTime).then((h) => h.jsonValue());
  for (let i = 0; i < 15; i++) {
    const context = await (await launch()).newContext({ locale });
    const page = watch(await context.newPage());
    await page.waitForTimeout(500); // a tab that is open, in a browser at rest: the last visit's process has ended
    await page.goto(env.base + '/');
    first.push(await keys(page));
    await page.locator('.sums').waitFor();
    await page.waitForTimeout(500);
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
  const plain = (path) => path.replace(/-[A-Z2-7]{8}(?=\.js$)/, ''); // the name without the hash
  const once = (path) => {
    if (!asked.has(path)) asked.set(path, Promise.withResolvers());
    return asked.get(path);
  };
  page.on('request', (r) => once(plain(new URL(r.url()).pathname)).resolve());
  // Each of these waits until the next has been asked for, so it cannot wait for this one.
  await page.route(/\/ui\/app-\w+\.js$/, async (r) => {
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
  assert.equal(await page.evaluate(() => performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/api/me')).length), 1, 'who the user is was asked twice');
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');

  // A view that cannot be loaded says so; one that is gone, because yaya was updated, has the page loaded again.
  let gone = true;
  await page.route(/\/ui\/servers-\w+\.js$/, (r) => (gone ? r.fulfill({ status: 404 }) : r.continue()));
  await go(page, 'servers');
  await page.getByRole('alert').filter({ hasText: /import|module/i }).waitFor();
  await go(page);
  await heading(page, 'Home');
  const index = (await (await fetch(env.base + '/')).text()).replaceAll(/-[A-Z2-7]{8}\.js/g, '-AAAAAAAA.js');
  await page.route(env.base + '/', (r) => {
    if (r.request().isNavigationRequest()) gone = false;
    return gone ? r.fulfill({ contentType: 'text/html', body: index }) : r.continue();
  });
  await go(page, 'servers');
  await heading(page, 'Servers');
  await page.getByText('srv', { exact: true }).first().waitFor();
  assert.equal(await page.evaluate(() => performance.getEntriesByType('navigation')[0].type), 'reload');

  // Once: another view that is gone says so, and the palette does.
  gone = true;
  let loads = 0;
  page.on('request', (r) => r.isNavigationRequest() && loads++);
  await page.route(/\/ui\/(metrics|palette)-\w+\.js$/, (r) => r.fulfill({ status: 404 }));
  await go(page, 'metrics');
  await page.getByRole('alert').filter({ hasText: /import|module/i }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByText('A part of the page cannot be loaded. Load the page again.').waitFor();
  assert.equal(loads, 0);

  // In another language, the texts are asked for before the script that needs them, once.
  const chinese = await open({ at: 'robots.txt', allow: /status of 404/, options: { locale: 'zh-CN' } });
  const texts = chinese.waitForRequest('**/ui/zh.json');
  await chinese.route(/\/ui\/begin-\w+\.js$/, async (r) => {
    await texts;
    await r.continue();
  });
  await chinese.goto(env.base + '/');
  await heading(chinese, '首页');
  assert.equal(await chinese.evaluate(() => performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/zh.json')).length), 1, 'the texts were loaded twice');

  // A page that comes in part is not empty.
  for (const [part, text] of [['app', 'The page cannot be loaded'], ['begin', 'The page cannot be loaded.']]) {
    const partly = await open({ at: 'robots.txt', allow: /./ }); // it is broken
    await partly.route(new RegExp(`/ui/${part}-\\w+\\.js$`), (r) => r.fulfill({ status: 404 }));
    await partly.goto(env.base + '/');
    await partly.getByText(text, { exact: part === 'app' }).waitFor();
    await partly.unroute(new RegExp(`/ui/${part}-\\w+\\.js$`));
    await partly.getByText('Try again').click();
    await heading(partly, 'Home');
  }

  if (env.measure) for (const locale of ['en-US', 'zh-CN']) await measured(locale);
});
