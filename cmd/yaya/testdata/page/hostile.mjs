// Everything that others write is hostile (UI-01, HT-27): no script of theirs runs,
// nothing of theirs is loaded, nothing of theirs looks like yaya.
import { act, assert, env, go, heading, idle, newSession, open, reject, run, say } from './lib.mjs';

const allow = /Refused to|Content Security Policy|TrustedScript|TrustedHTML|This document requires|ERR_BLOCKED_BY_RESPONSE|ERR_BLOCKED_BY_CSP|violates the following|status of 404|status of 400|status of 413|chromewebdata|Framing '/;

// What a view may have become of somebody's text.
const clean = async (page, where) => {
  const found = await page.evaluate(() => ({
    xss: window.__xss, polluted: {}.polluted, elements: [...document.querySelectorAll('main img, main script, main iframe, main object, main embed, main video, main audio, main form[action], main base, main meta, main link, main style, main svg:not(.qr):not([role=img]):not(.i)')].map((e) => e.outerHTML.slice(0, 120)),
    icons: [...document.querySelectorAll('main svg.i')].filter((e) => !/^<use href="\/ui\/icons\.svg#[a-z]+"><\/use>$/.test(e.innerHTML)).map((e) => e.outerHTML.slice(0, 120)),
    handlers: [...document.querySelectorAll('main *')].filter((e) => [...e.attributes].some((a) => /^on/i.test(a.name))).length,
    links: [...document.querySelectorAll('main a')].map((a) => a.getAttribute('href')).filter((h) => !/^(#\/|https?:\/\/|mailto:)/.test(h ?? '')),
    named: [...document.querySelectorAll('main [id], main [name]')].map((e) => e.id || e.getAttribute('name')).filter((n) => !/^f\d+$/.test(n)),
  }));
  assert.deepEqual(found, { xss: undefined, polluted: undefined, elements: [], icons: [], handlers: 0, links: [], named: [] }, where);
};

await run(async () => {
  const page = await open({ allow });
  page.on('dialog', (d) => assert.fail('a dialog: ' + d.message()));

  // UI-03: a script that got into the document does not run, and no string becomes markup.
  const csp = await page.evaluate(() => {
    const tried = {};
    for (const [name, f] of Object.entries({
      inline: () => { const s = document.createElement('script'); s.textContent = 'window.__xss = "inline"'; document.body.append(s); },
      markup: () => { document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.__xss=1">'); },
      inner: () => { document.createElement('div').innerHTML = '<b>x</b>'; },
      // Later, when it is not the debugger that calls.
      eval: () => { setTimeout(() => { try { window.__xss = (0, eval)('"eval"'); } catch (e) { window.__eval = e.name; } }); },
      handler: () => { const b = document.createElement('b'); b.setAttribute('onclick', 'window.__xss="handler"'); document.body.append(b); b.click(); b.remove(); },
      url: () => { const s = document.createElement('script'); s.src = 'data:text/javascript,window.__xss=1'; document.body.append(s); },
    })) {
      try {
        f();
        tried[name] = 'done';
      } catch (e) {
        tried[name] = e.name;
      }
    }
    return tried;
  });
  await page.waitForTimeout(200);
  assert.equal(await page.evaluate(() => window.__xss), undefined, JSON.stringify(csp));
  assert.equal(await page.evaluate(() => window.__eval), 'EvalError');
  for (const name of ['inline', 'markup', 'inner', 'url']) assert.notEqual(csp[name], 'done', name);

  // UI-04: no frame.
  const framing = await page.context().newPage();
  await framing.goto(env.control + '/frame?' + encodeURIComponent(env.base));
  await framing.waitForTimeout(500);
  assert.ok(!framing.frames().some((f) => f.url().startsWith(env.base)), 'it is framed: ' + framing.frames().map((f) => f.url()));
  await framing.close();

  // UI-01: what a server says of itself and of its tools.
  for (const view of [['tools'], ['tools', 'evil__x'], ['servers'], ['servers', 'evil'], ['servers', 'evil', 'tools'], ['servers', 'evil', 'logs'], ['servers', 'evil', 'config'], ['servers', 'evil', 'trust'], ['providers'], ['devices'], ['config'], ['agents'], ['cluster'], ['audit'], ['traffic'], ['traffic', 'server:evil', '1'], ['']]) {
    await go(page, ...view);
    await page.locator('main h1').first().waitFor();
    await page.getByText('Loading …').first().waitFor({ state: 'detached' });
    await clean(page, view.join('/'));
  }
  await go(page, 'devices');
  await page.getByText('<img src=x onerror=window.__xss=1>').first().waitFor(); // the text is shown as it is

  // Its results: text, markdown, JSON with names that mean something to JavaScript (UI-11).
  for (const kind of ['text', 'json', 'deep', 'error', 'huge']) {
    await go(page, 'tools', 'evil__x');
    await page.getByLabel(/^kind/).fill(kind);
    await page.getByRole('button', { name: 'Call it' }).click();
    await page.getByRole('region', { name: 'Result' }).waitFor();
    await clean(page, 'a result: ' + kind);
    if (kind === 'json') assert.match(await page.getByRole('group', { name: 'Structured result' }).innerText(), /__proto__/);
    await go(page, 'tools');
    await heading(page, 'Tools');
  }

  // The same in the record of calls.
  await go(page, 'traffic');
  await page.getByRole('option').first().click();
  await page.getByRole('group', { name: 'Result of the call' }).waitFor();
  await clean(page, 'a recorded call');
  await go(page, 'traffic', '<img src=x onerror=window.__xss=1> server:"<b>"', '1');
  await page.getByText('No calls match.').waitFor();
  await clean(page, 'a filter');

  // What a model writes, at once and while it is written; what it looks like is not what it is.
  const id = await newSession(page);
  await say(page, '<img src=x onerror="window.__xss=2"> evil');
  await idle(page);
  await clean(page, 'a conversation');
  assert.equal(await page.getByRole('region', { name: /^yaya asks/ }).count(), 0, 'UI-07: a text is taken for a question');
  assert.equal(await page.getByRole('log').getByRole('button').count(), 0, 'UI-07: a text has buttons');
  const said = await page.getByRole('article', { name: 'yaya' }).last().innerText();
  assert.ok(said.includes('<script>') && said.includes('YAYA ASKS') && said.includes('\\u{202e}'), said);
  const to = await page.getByRole('article', { name: 'yaya' }).last().getByRole('link').evaluateAll((as) => as.map((a) => a.href + ' ' + a.rel + ' ' + a.target));
  assert.deepEqual(to, ['https://example.com/x noopener noreferrer _blank', 'https://example.com/track.png noopener noreferrer _blank']);

  // UI-07: a question appears where the pointer is, while somebody types: neither a click
  // nor Enter in the first half second is an answer.
  await page.evaluate(() => {
    window.__clicked = 0; // by a pointer that was there before the question
    new MutationObserver((_, seen) => {
      const buttons = [...document.querySelectorAll('section[aria-label^="yaya asks"] footer button')];
      if (buttons.length === 0) return;
      seen.disconnect();
      for (const b of buttons) b.click();
      window.__clicked = buttons.length;
    }).observe(document.body, { childList: true, subtree: true });
  });
  await say(page, 'ask');
  const question = page.getByRole('region', { name: /^yaya asks/ });
  await question.waitFor();
  assert.equal(await page.evaluate(() => window.__clicked), 3, 'nobody has clicked');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Space');
  assert.equal(await question.count(), 1, 'it was answered by accident');
  assert.match(await question.innerText(), /\\u\{202e\}/, 'what would run is shown with what it hides');
  await clean(page, 'a question');
  await reject(question);
  await question.waitFor({ state: 'detached' });

  // UI-08: a message of a megabyte, and the page still answers.
  await idle(page);
  await page.getByRole('textbox', { name: 'Message' }).fill('x <b>'.repeat(180_000));
  await page.keyboard.press('Enter');
  await page.getByRole('alert').filter({ hasText: 'attach what is longer' }).waitFor(); // it is told, and loses nothing
  assert.equal(await page.getByRole('button', { name: /Show all/ }).count(), 1);
  await page.getByRole('button', { name: 'Discard' }).click();
  await page.getByRole('textbox', { name: 'Message' }).fill('x <b>'.repeat(50_000));
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: /Show all/ }).first().waitFor();
  await idle(page);
  const took = await page.evaluate(async () => {
    const t = performance.now();
    document.querySelector('.virtual').scrollTop = 0;
    await new Promise((ok) => requestAnimationFrame(() => requestAnimationFrame(ok)));
    return performance.now() - t;
  });
  console.log(`with messages of a quarter of a megabyte, scrolling took ${Math.round(took)} ms`);
  await go(page, 'chat');
  await clean(page, 'the list');

  // HT-27: an uploaded page is a file to be saved, never a page.
  const ref = await act('upload', id);
  const opened = await page.context().newPage();
  const download = opened.waitForEvent('download');
  await opened.goto(env.base + ref).catch(() => {});
  assert.ok(await download, 'it was shown');
  assert.equal(await opened.evaluate(() => window.__xss), undefined);
  await opened.close();

  // A tool whose name is a member of every object, and an address that is none.
  for (const view of [['tools', '__proto__'], ['tools', 'constructor'], ['chat', '__proto__'], ['servers', 'toString'], ['%E0%A4%A'], ['nothing']]) {
    await go(page, ...view);
    await page.locator('main').getByText(/not found|not offered|Loading|unmatched|Go to Home/).first().waitFor();
    await clean(page, view.join('/'));
  }
});
