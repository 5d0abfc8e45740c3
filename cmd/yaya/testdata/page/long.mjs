// A session of ten thousand events and more: what is in the document stays small, the
// end is there at once, and everything can be reached.
import { assert, env, go, heading, open, run, say } from './lib.mjs';

await run(async () => {
  const page = await open();
  await heading(page, 'Home');
  const load = await page.evaluate(() => {
    const n = performance.getEntriesByType('navigation')[0];
    const all = [n, ...performance.getEntriesByType('resource').filter((r) => /\/ui\/|\/$/.test(r.name))];
    return { bytes: all.reduce((s, r) => s + r.decodedBodySize, 0), sent: all.reduce((s, r) => s + r.encodedBodySize, 0), files: all.length };
  });
  console.log(`first load: ${load.files} files, ${load.bytes} bytes, ${load.sent} sent`);
  assert.ok(load.bytes < 150 * 1024 && load.bytes > 10_000, `the first load is ${load.bytes} bytes`);

  const t = Date.now();
  await go(page, 'chat', env.session);
  await page.getByText(env.last, { exact: true }).waitFor();
  console.log(`the end of ${env.events} events is there after ${Date.now() - t} ms`);
  const rows = () => page.locator('.virtual .row').count();
  assert.ok((await rows()) < 100, `${await rows()} rows are in the document`);
  // All the way up, by scrolling.
  const frames = await page.evaluate(async (first) => {
    const box = document.querySelector('.virtual');
    const gaps = [];
    let last = performance.now();
    let most = 0;
    for (let i = 0; i < 4000; i++) {
      box.scrollTop = Math.max(0, box.scrollTop - 3000);
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      gaps.push(now - last);
      last = now;
      most = Math.max(most, box.querySelectorAll('.row').length);
      if (box.scrollTop === 0 && [...box.querySelectorAll('.said')].some((e) => e.textContent === first)) return { gaps, most, there: true };
    }
    return { gaps, most, there: false };
  }, env.first);
  frames.gaps.sort((a, b) => a - b);
  console.log(`up through all of it: ${frames.gaps.length} frames, median ${frames.gaps[frames.gaps.length >> 1].toFixed(0)} ms, 99 % within ${frames.gaps[Math.floor(frames.gaps.length * 0.99)].toFixed(0)} ms, at most ${frames.most} rows`);
  assert.ok(frames.there, 'the beginning cannot be reached');
  assert.ok(frames.most < 150, `${frames.most} rows were in the document`);
  // What comes from elsewhere does not move what is looked at; at the end it does.
  const view = () => page.evaluate(() => { const b = document.querySelector('.virtual'); return { top: b.scrollTop, full: b.scrollHeight }; });
  const before = await view();
  const tab = await page.context().newPage();
  await tab.goto(env.base + '/#/chat/' + encodeURIComponent(env.session));
  await say(tab, 'one more');
  await tab.getByText('echo: one more').waitFor();
  await tab.close();
  await page.waitForFunction((full) => document.querySelector('.virtual').scrollHeight > full + 60, before.full);
  assert.ok(Math.abs((await view()).top - before.top) < 5, 'what is looked at has moved');
  await page.evaluate(() => { const b = document.querySelector('.virtual'); b.scrollTop = b.scrollHeight; });
  await page.getByText('echo: one more').waitFor();
});
