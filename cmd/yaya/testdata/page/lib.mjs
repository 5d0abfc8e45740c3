// What the scenarios have in common: a real Chromium, and a page of which every script
// error, every refused request and every request elsewhere is a failure.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

export const env = JSON.parse(process.env.SCENARIO);
const require = createRequire(env.modules + '/');
export const { chromium } = require('playwright-core');
const axe = require.resolve('axe-core/axe.min.js');
export { assert };

export const act = async (name, arg = '') => {
  const r = await fetch(`${env.control}/${name}`, { method: 'POST', body: arg });
  assert.ok(r.ok, `${name}: ${await r.clone().text()}`);
  return r.json();
};

let browser;
export const launch = async () =>
  (browser ??= await chromium.launch({
    executablePath: env.chromium,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
  }));

const problems = [];
// problem is what a page may not do; allow is a pattern of what a scenario expects.
export const watch = (page, name = 'page', allow = /$^/) => {
  const say = (what) => allow.test(what) || problems.push(`${name}: ${what}`);
  page.on('pageerror', (e) => say('script error: ' + (e.stack ?? e.message)));
  page.on('console', (m) => ['error', 'warning'].includes(m.type()) && say(`console ${m.type()}: ${m.text()}`));
  page.on('request', (r) => {
    const u = new URL(r.url());
    if (!['data:', 'blob:'].includes(u.protocol) && u.host !== new URL(env.base).host) say('request elsewhere: ' + r.url());
  });
  page.setDefaultTimeout(60_000);
  return page;
};

// open opens the page in a browser profile of its own.
export const open = async ({ at = '', options = {}, name, allow } = {}) => {
  const context = await (await launch()).newContext({ ignoreHTTPSErrors: true, locale: 'en-US', reducedMotion: 'reduce', ...options }); // nothing is looked at in between
  const page = watch(await context.newPage(), name, allow);
  await page.goto(env.base + '/' + at);
  return page;
};

// shot makes a picture for people, where they are wanted.
export const shot = async (page, name) => {
  if (!env.screens) return;
  mkdirSync(env.screens, { recursive: true });
  await page.screenshot({ path: `${env.screens}/${name}.png` });
};

// violationsOf returns what axe-core finds. Only colours differ between light and dark: in the second, rules
// says that they are looked at alone.
export const violationsOf = async (page, rules = {}) => {
  if (!(await page.evaluate(() => Boolean(window.axe)))) await page.evaluate(readFileSync(axe, 'utf8')); // by the debugger: the page's policy would not let a script in
  return (await page.evaluate((o) => window.axe.run(document, o), { resultTypes: ['violations'], ...rules })).violations;
};

// checked fails if axe-core finds something, or if the page is wider than the screen.
export const checked = async (page, what, rules = {}) => {
  const violations = await violationsOf(page, rules);
  assert.deepEqual(violations.map((v) => `${what}: ${v.id}: ${v.nodes[0].html.slice(0, 160)}`), []);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(wide, 0, `${what} is ${wide}px wider than the screen`);
};

export const COLOURS = { runOnly: ['color-contrast'] };

export const go = (page, ...to) => page.evaluate((h) => void (location.hash = h), '#/' + to.map(encodeURIComponent).join('/'));
export const heading = (page, name) => page.getByRole('heading', { name, level: 1 }).waitFor();

export const newSession = async (page, workspace = env.workspace) => {
  await go(page, 'chat', 'new');
  await page.getByLabel('Folder', { exact: true }).fill(workspace);
  await page.getByRole('button', { name: 'Start' }).click();
  await page.getByRole('textbox', { name: 'Message' }).waitFor();
  return decodeURIComponent(new URL(page.url()).hash.split('/').pop());
};

export const say = async (page, text, key = 'Enter') => {
  const box = page.getByRole('textbox', { name: 'Message' });
  await box.fill(text);
  await box.press(key);
};

export const idle = (page) => page.getByRole('status').filter({ hasText: /^\s*Idle/ }).waitFor();

// reject answers a question with no, and why.
export const reject = async (question, why = '') => {
  await question.getByRole('button', { name: /^(Reject|Refuse|Do not trust) …/ }).click();
  await question.getByLabel('Reason').fill(why);
  await question.getByRole('button', { name: 'Reject', exact: true }).click();
};

// run runs a scenario and fails if it did, or if any page did what it may not.
export const run = async (f) => {
  let failed;
  try {
    await f();
  } catch (e) {
    failed = e;
    for (const c of browser?.contexts() ?? []) for (const p of c.pages()) console.error('--- ' + p.url() + '\n' + (await p.innerText('body').catch(() => '?')).slice(0, 3000));
  }
  await browser?.close();
  if (!failed && problems.length) failed = new Error('the page did what it may not');
  if (failed) {
    console.error(failed.stack ?? failed);
    for (const p of problems) console.error(p);
    process.exit(1);
  }
};

// firstSeen notes how a button is when it appears, as no look from here is early enough
// for; first asks for it then.
export const firstSeen = async (page, name) => {
  await page.evaluate((name) => {
    const button = () => [...document.querySelectorAll('button')].find((b) => b.textContent.trim().startsWith(name));
    window.seen = undefined;
    new MutationObserver((_, o) => {
      const b = button();
      if (!b) return;
      window.seen = { disabled: b.disabled, focused: b === document.activeElement };
      o.disconnect();
    }).observe(document.body, { childList: true, subtree: true });
  }, name);
  return () => page.evaluate(() => window.seen);
};
