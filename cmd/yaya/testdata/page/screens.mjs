// Every view, at desktop and phone width, light and dark: a picture of each for people,
// and what axe-core says of it. Only colours differ between light and dark, and they do not depend on the width:
// the dark phone is for people alone.
import { mkdirSync } from 'node:fs';
import { act, assert, COLOURS, env, go, heading, idle, newSession, open, run, say, violationsOf } from './lib.mjs';

const VIEWS = ['', 'chat', 'chat/new', 'approvals', 'servers', 'servers/everything', 'servers/everything/tools', 'servers/everything/logs', 'servers/everything/config', 'servers/foreign/trust', 'servers//new', 'catalogue', 'tools', 'tools/everything__get-sum', 'sandbox', 'devices', 'providers', 'clients', 'plugins', 'config', 'agents', 'cluster', 'audit', 'traffic', 'traffic//1', 'metrics', 'start', 'start/clients'];

await run(async () => {
  if (env.screens) mkdirSync(env.screens, { recursive: true });
  const first = await open();
  const id = await newSession(first);
  await act('change');
  await say(first, 'show');
  await idle(first);
  await say(first, 'ask');
  await first.getByRole('region', { name: /^yaya asks/ }).waitFor();
  await first.getByRole('link', { name: /^Servers/ }).getByLabel('1 waiting').waitFor();
  await first.context().close();
  const found = [];
  for (const [size, viewport] of [['desktop', { width: 1280, height: 800 }], ['phone', { width: 390, height: 844 }]]) {
    for (const colorScheme of size === 'desktop' || env.screens ? ['light', 'dark'] : ['light']) {
      const rules = colorScheme === 'dark' ? COLOURS : {};
      const page = await open({ options: { viewport, colorScheme, reducedMotion: 'reduce' }, name: `${size} ${colorScheme}` });
      for (const view of [...VIEWS, 'chat/' + id]) {
        const name = `${(view.startsWith('chat/sess') ? 'session' : view || 'home').replaceAll('/', '-')}-${size}-${colorScheme}`;
        await page.evaluate((h) => void (location.hash = h), '#/' + view);
        await page.locator('main h1').first().waitFor();
        await page.getByText('Loading …').first().waitFor({ state: 'detached' });
        await page.waitForTimeout(150);
        if (view === 'start/clients' && size === 'desktop') await page.getByText('Claude Code').first().waitFor();
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        if (wide > 0) found.push(`${name}: ${wide}px wider than the screen`);
        for (const v of await violationsOf(page, rules)) if (['serious', 'critical', 'moderate'].includes(v.impact)) found.push(`${name}: ${v.impact} ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')}`);
        if (env.screens) await page.screenshot({ path: `${env.screens}/${name}.png`, fullPage: !view.startsWith('chat/sess') });
      }
      // A dialog, and the menu of a phone.
      await go(page, 'devices');
      await page.getByRole('button', { name: 'Add a device' }).click();
      await page.getByRole('dialog').waitFor();
      for (const v of await violationsOf(page, rules)) if (['serious', 'critical', 'moderate'].includes(v.impact)) found.push(`dialog-${size}-${colorScheme}: ${v.id}: ${v.nodes.slice(0, 2).map((n) => n.html.slice(0, 160)).join(' | ')}`);
      if (env.screens) await page.screenshot({ path: `${env.screens}/dialog-${size}-${colorScheme}.png` });
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      if (size === 'phone') {
        await page.getByRole('button', { name: 'More' }).click();
        await page.getByRole('link', { name: 'Audit' }).waitFor();
        if (env.screens) await page.screenshot({ path: `${env.screens}/menu-${size}-${colorScheme}.png` });
      }
      await page.context().close();
    }
  }
  assert.deepEqual(found, []);

  // By keyboard alone: to a view, to the conversation's box, and an answer to a question.
  const page = await open();
  await heading(page, 'Home');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
  await go(page, 'approvals');
  await page.locator('button:enabled', { hasText: 'Reject …' }).waitFor();
  const reached = [];
  for (let i = 0; i < 60 && !reached.at(-1)?.startsWith('Reject …'); i++) {
    await page.keyboard.press('Tab');
    reached.push(await page.evaluate(() => document.activeElement.textContent.trim()));
  }
  await page.keyboard.press('Enter');
  await page.keyboard.type('not now');
  await page.keyboard.press('Enter');
  await page.getByText('No calls wait for approval.').waitFor();
});
