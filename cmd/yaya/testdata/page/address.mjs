import { assert, env, heading, launch, run, watch } from './lib.mjs';

// A secret in the address is gone before anything but the page's first script is there,
// and before anything is asked of yaya but who the user is; it is in no request, no Referer and no history.
await run(async () => {
  const denied = /401|403/;
  const looks = await (await launch()).newContext({ ignoreHTTPSErrors: true });
  const ask = (path) => looks.request.get(env.base + path);
  const [begin] = /\/ui\/begin-\w+\.js/.exec(await (await ask('/')).text());
  const firsts = [begin, ...(await (await ask(begin)).text()).matchAll(/(?:from|import)"\.(\/[^"]+)"/g).map((m) => '/ui' + m[1])];
  assert.equal(firsts.length, 2);
  for (const [at, code] of [
    ['#code=' + env.code, env.code], ['?token=canary', ''], ['?token=canary#/servers', ''], ['?token=canary#code=' + env.code, env.code], ['#token=canary', ''], ['#/servers?token=canary', ''], ['?x=1&device_token=canary#access_token=canary', ''],
  ]) {
    const context = await (await launch()).newContext({ ignoreHTTPSErrors: true, locale: 'en-US' });
    const page = watch(await context.newPage(), at, denied);
    const secret = (/** @type {string} */ s) => s.includes('canary') || s.includes(env.code);
    // Everything but the document and its first script waits until the address is clean.
    let release;
    const clean = new Promise((ok) => (release = ok));
    await page.route((u) => u.pathname !== '/' && !firsts.includes(u.pathname), async (route) => {
      await clean;
      await route.continue();
    });
    let first = true;
    page.on('request', (r) => {
      const known = first && new URL(r.url()).pathname === '/'; // what was typed
      first = false;
      const all = [known ? '' : r.url(), r.postData() ?? '', ...Object.values(r.headers())].join(' ');
      assert.ok(!secret(all), `${at}: ${r.url()} has it`);
    });
    await page.goto(env.base + '/' + at, { waitUntil: 'commit' });
    await page.waitForFunction(() => !/=/.test(location.href), undefined, { polling: 20 } /* nothing is painted yet */);
    assert.ok(!secret(page.url()), `${at}: the address is ${page.url()}`);
    assert.equal(await page.evaluate(() => document.querySelectorAll('#app h1').length), 0, 'the page was there first');
    release();
    await heading(page, env.local ? (at.includes('#/servers') && !at.includes('servers?') ? 'Servers' : 'Home') : 'Enroll this browser');
    assert.ok(!secret(page.url()), `${at}: the address became ${page.url()}`);
    if (!env.local) assert.equal(await page.getByLabel('Code').inputValue(), code);
    // Pasted over the page that is open.
    await page.evaluate((h) => void (location.hash = h), '#code=' + env.code);
    await page.waitForFunction(() => !/=/.test(location.href));
    await page.goBack().catch(() => {});
    assert.ok(!secret(page.url()), `${at}: back to ${page.url()}`);
    await context.close();
  }
});
