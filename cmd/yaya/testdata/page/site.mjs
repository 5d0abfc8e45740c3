// The documentation site: every kind of page at desktop and phone width, light and dark, its
// search by keyboard, and the site without scripts and as files.
import { assert, checked, COLOURS, env, open, run, shot } from './lib.mjs';

const PAGES = ['index', 'start', 'guides/one-machine', 'troubleshooting', 'config', 'reference/cli', 'reference/api', 'peers', 'adr/0002-strict-scan-instead-of-decoding'];

await run(async () => {
  for (const [size, viewport] of [['desktop', { width: 1280, height: 800 }], ['phone', { width: 390, height: 844 }]]) {
    for (const colorScheme of size === 'desktop' || env.screens ? ['light', 'dark'] : ['light']) {
      const page = await open({ at: 'index.html', options: { viewport, colorScheme }, name: `${size} ${colorScheme}` });
      for (const at of PAGES) {
        await page.goto(`${env.base}/${at}.html`);
        await checked(page, `${at} ${size} ${colorScheme}`, colorScheme === 'dark' ? COLOURS : {});
        await shot(page, `site-${at.replaceAll('/', '-')}-${size}-${colorScheme}`);
      }
      await page.context().close();
    }
  }

  // By keyboard alone: to the content, and to what the search finds.
  const page = await open({ at: 'guides/team.html', name: 'keyboard' });
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
  const search = page.getByRole('searchbox', { name: 'Search' });
  await search.fill('exit codes');
  await page.getByRole('status').filter({ hasText: /\d results?/ }).waitFor();
  await checked(page, 'results');
  await search.press('Tab');
  assert.match(await page.evaluate(() => document.activeElement.textContent), /^Exit codes/);
  await page.keyboard.press('Enter');
  await page.waitForURL(/#exit-codes$/);
  await page.getByRole('searchbox').fill('zzzzzz');
  await page.getByRole('status').filter({ hasText: '0 results' }).waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await page.getByRole('searchbox').inputValue(), '');

  // Previous and next lead through the pages.
  await page.goto(`${env.base}/start.html`);
  await page.getByRole('link', { name: /^Next/ }).click();
  await page.waitForURL(/\/(install|guides\/one-machine)\.html$/);
  await page.getByRole('link', { name: /^Previous/ }).click();
  await page.waitForURL(/\/start\.html$/);
  await page.context().close();

  const still = await open({ at: 'start.html', options: { javaScriptEnabled: false }, name: 'no scripts' });
  assert.equal(await still.getByRole('searchbox').count(), 0);
  await still.getByRole('navigation', { name: 'All pages' }).getByRole('link', { name: 'Troubleshooting' }).click();
  await still.getByRole('heading', { level: 1, name: 'Troubleshooting' }).waitFor();
  await still.context().close();
});
