// The frame: the palette, the bell, the count in the title, the theme and the keys.
import { assert, checked, env, go, heading, newSession, open, reject, run, say, shot } from './lib.mjs';

await run(async () => {
  // What asks the browser, and what it is told, is noted; the page is hidden when it is told.
  const page = await open({ at: 'robots.txt', allow: /./ });
  await page.addInitScript(() => {
    window.asked = 0;
    window.told = [];
    window.Notification = class {
      static permission = 'default';
      static async requestPermission() {
        window.asked++;
        return (window.Notification.permission = 'granted');
      }
      constructor(title, o) {
        window.told.push({ title, ...o });
      }
      close() {}
    };
  });
  await page.goto(env.base + '/');
  await heading(page, 'Home');
  assert.equal(await page.title(), 'Home · yaya');

  // The palette: views, servers, tools, sessions; what it finds, it opens.
  await page.getByRole('button', { name: 'Search or run' }).first().focus();
  await page.keyboard.press('Control+k');
  const palette = page.getByRole('dialog', { name: 'Search or run' });
  const input = palette.getByRole('combobox');
  await input.waitFor();
  await checked(page, 'the palette');
  await shot(page, 'palette-desktop-light');
  await page.keyboard.type('evil');
  const option = palette.getByRole('option');
  await option.filter({ hasText: 'evil' }).first().waitFor();
  const names = () => option.allInnerTexts();
  await page.waitForFunction(() => document.querySelectorAll('[role=option]').length > 2);
  assert.ok((await names()).some((n) => n.includes('Restart evil')), String(await names()));
  assert.ok((await names()).some((n) => n.includes('evil__x')), String(await names()));
  assert.equal(await palette.locator('img').count(), 0, 'a name became markup');
  await input.fill('@evil');
  assert.ok((await names()).every((n) => !n.includes('Restart')), String(await names()));
  await input.fill('>restart evil');
  assert.equal(await option.count(), 1);
  assert.equal(await option.getAttribute('aria-selected'), 'true');
  await page.keyboard.press('Enter');
  await page.getByRole('status').filter({ hasText: 'evil restarts.' }).waitFor();
  await page.keyboard.press('Control+k');
  await input.fill('au');
  await option.filter({ hasText: 'Audit' }).waitFor();
  for (let i = 0; i < 20 && !(await option.filter({ hasText: 'Audit' }).getAttribute('aria-selected')).includes('true'); i++) await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await heading(page, 'Audit');
  await page.keyboard.press('Control+k');
  for (const [words, group] of [['llm-echo', 'Plugins'], ['approval.timeout', 'Settings']]) {
    await input.fill(words);
    await palette.getByRole('group', { name: group }).getByRole('option').filter({ hasText: words }).waitFor();
  }
  await page.keyboard.press('Enter');
  await heading(page, 'Settings');
  assert.equal(await page.getByRole('searchbox', { name: 'Filter settings' }).inputValue(), 'approval.timeout');
  assert.equal(await page.locator('.setting').count(), 1);
  await page.keyboard.press('Control+k');
  await input.fill('nothing is called this');
  await palette.getByText('Nothing is called that.').waitFor();
  await page.keyboard.press('Escape');
  await palette.waitFor({ state: 'detached' });

  // An address that leads nowhere says so.
  for (const at of ['nonsense/x', '%E0%A4%A']) {
    await page.evaluate((h) => void (location.hash = h), '#/' + at);
    await heading(page, 'Page not found');
    await go(page, 'config');
    await heading(page, 'Settings');
  }
  assert.equal(await page.getByRole('link', { name: 'Setup' }).count(), 1, 'Setup is a tab');

  // Single keys, and the switch that turns them off.
  await page.keyboard.press('g');
  await page.keyboard.press('v');
  await heading(page, 'Servers');
  // A key of the page's first moments stands for itself, too.
  await page.evaluate(() => dispatchEvent(Object.defineProperty(new KeyboardEvent('keydown', { key: '?' }), 'timeStamp', { value: 900 })));
  const keys = page.getByRole('dialog', { name: 'Keys' });
  await keys.getByLabel('Single keys work in this browser').uncheck();
  await page.keyboard.press('Escape');
  await keys.waitFor({ state: 'detached' });
  await page.keyboard.press('g');
  await page.keyboard.press('h');
  await heading(page, 'Servers');
  assert.equal(await page.evaluate(() => localStorage.getItem('yaya.keys')), 'off');

  // The theme: of the system, or chosen, and then kept.
  const ground = () => page.evaluate(() => getComputedStyle(document.querySelector('.panel')).backgroundColor);
  assert.equal(await ground(), 'rgb(255, 255, 255)');
  await page.getByRole('button', { name: /^Theme: that of the system/ }).click();
  await page.getByRole('button', { name: /^Theme: light/ }).click();
  assert.equal(await ground(), 'rgb(18, 19, 23)');
  await page.reload();
  await heading(page, 'Servers');
  assert.equal(await ground(), 'rgb(18, 19, 23)');
  await page.getByRole('button', { name: /^Theme: dark/ }).click();
  assert.equal(await ground(), 'rgb(255, 255, 255)');

  // The bell, and notifications of the browser: nobody is asked before they ask for it.
  const bell = page.getByRole('button', { name: /^Notifications/ });
  await bell.click();
  const list = page.getByRole('region', { name: 'Notifications' });
  await list.getByText('broken').first().waitFor();
  await checked(page, 'the bell');
  await shot(page, 'bell-desktop-light');
  assert.equal(await page.evaluate(() => window.asked), 0, 'the page asked by itself');
  await list.getByRole('button', { name: 'Notify me in this browser' }).click();
  await list.getByText('This browser notifies you.').waitFor();

  // What is read in one browser is read in all.
  const other = await open();
  await heading(other, 'Home');
  await other.locator('.bell.new').waitFor();
  await list.getByRole('button', { name: 'Mark all as read' }).click();
  await list.getByRole('img', { name: 'Unread' }).first().waitFor({ state: 'detached' });
  await list.getByText('broken').first().waitFor(); // it still needs somebody
  await other.locator('.bell.new').waitFor({ state: 'detached' });
  await other.reload();
  await heading(other, 'Home');
  await other.getByRole('region', { name: 'Needs you' }).getByText('broken').first().waitFor();
  assert.equal(await other.locator('.bell.new').count(), 0);
  await page.keyboard.press('Escape');
  await list.waitFor({ state: 'detached' });
  await newSession(page);
  await page.evaluate(() => Object.defineProperty(document, 'hidden', { value: true, configurable: true }));
  await say(page, 'ask');
  await page.getByRole('region', { name: /^yaya asks/ }).waitFor();
  await page.waitForFunction(() => window.told.length === 1);
  const told = await page.evaluate(() => window.told[0]);
  assert.deepEqual([told.title, told.body], ['yaya asks', 'shell waits for your approval']);
  assert.ok(!JSON.stringify(told).includes('canary'), 'a notification has arguments');
  await page.waitForFunction(() => document.title.startsWith('(1) '));
  assert.ok((await page.locator('link[rel=icon]').getAttribute('href')).includes('waits'));
  await page.evaluate(() => Object.defineProperty(document, 'hidden', { value: false, configurable: true }));
  await reject(page.getByRole('region', { name: /^yaya asks/ }));
  await page.waitForFunction(() => !document.title.startsWith('('));

  // The session is done: news elsewhere, and not for whoever has it open, nor once they have left.
  await other.locator('.bell.new').waitFor();
  await other.getByRole('button', { name: /^Notifications, 1/ }).click();
  await other.getByRole('region', { name: 'Notifications' }).getByText('is done').waitFor();
  assert.equal(await page.locator('.bell.new').count(), 0);
  await go(page, '');
  await other.getByRole('button', { name: 'Notifications', exact: true }).waitFor();
});
