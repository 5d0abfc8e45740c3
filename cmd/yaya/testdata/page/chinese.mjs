// The page in Chinese: every text of these views, on a desktop and on a phone.
import { assert, checked, env, go, open, run, shot } from './lib.mjs';

const VIEWS = ['', 'servers', 'servers/srv', 'servers/srv/tools', 'servers/srv/logs', 'servers/srv/config', 'servers/srv/trust', 'servers//new', 'tools', 'tools/srv__good', 'traffic', 'traffic//1', 'start'];

// english returns the texts of the page that are shown in English. Names and what programs say
// are in elements of their own.
const english = () =>
  fetch('/ui/zh.json')
    .then((r) => r.json())
    .then((table) => {
      const found = [];
      const look = (text, where) => {
        const s = text.replace(/\s+/g, ' ').trim();
        if (Object.hasOwn(table, s) && table[s] !== s) found.push(`${where}: ${s}`);
      };
      for (const e of document.querySelectorAll('body *')) {
        if (e.closest('bdi, code, pre, .logs')) continue;
        for (const n of e.childNodes) if (n.nodeType === Node.TEXT_NODE) look(n.data, e.tagName);
        for (const a of ['aria-label', 'title', 'placeholder', 'label']) if (e.hasAttribute(a)) look(e.getAttribute(a), a);
      }
      return found;
    });

await run(async () => {
  for (const tool of ['srv__good', 'srv__bad']) await fetch(`${env.base}/api/tools/${tool}/call`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"arguments":{}}' });
  for (const [size, viewport] of [['desktop', { width: 1280, height: 800 }], ['phone', { width: 390, height: 844 }]]) {
    const page = await open({ options: { locale: 'zh-CN', viewport } });
    await page.getByRole('heading', { name: '首页', level: 1 }).waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh');
    for (const view of VIEWS) {
      const name = `${view.replaceAll('/', '-') || 'home'}-${size}-chinese`;
      await go(page, ...(view ? view.split('/') : ['']));
      await page.locator('main h1').first().waitFor();
      await page.getByText('正在加载…').first().waitFor({ state: 'detached' });
      await checked(page, name);
      assert.deepEqual(await page.evaluate(english), [], name);
      await shot(page, name);
    }
    await go(page, '');
    await page.getByRole('button', { name: '搜索或执行' }).locator('visible=true').first().click();
    await page.getByRole('dialog', { name: '搜索或执行' }).getByRole('option').first().waitFor();
    assert.deepEqual(await page.evaluate(english), [], 'the palette');
    await page.keyboard.press('Escape');
    if (size === 'desktop') {
      await page.getByRole('button', { name: /^通知/ }).click();
      await page.getByRole('region', { name: '通知' }).getByText('broken').first().waitFor();
      assert.deepEqual(await page.evaluate(english), [], 'the bell');
      await shot(page, 'bell-desktop-chinese');
      await page.keyboard.press('Escape');
      await page.keyboard.press('?');
      await page.getByRole('dialog', { name: '快捷键' }).waitFor();
      assert.deepEqual(await page.evaluate(english), [], 'the keys');
    }
    await page.context().close();
  }
});
