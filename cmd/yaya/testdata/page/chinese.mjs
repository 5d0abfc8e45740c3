// Every view in Chinese, on a desktop and on a phone: no English in what is seen or read out but data, what
// yaya itself says (marked with its language), and terms that stay.
import { assert, checked, env, newSession, open, run, say, shot } from './lib.mjs';

// The views, each with the buttons that are clicked in it.
const VIEWS = [
  [''], ['chat'], ['chat/new'], ['approvals'], ['servers'], ['servers/srv'], ['servers/srv/tools'], ['servers/srv/logs'], ['servers/srv/config'], ['servers/srv/trust'], ['servers//new'],
  ['tools'], ['tools/srv__good'], ['catalogue'], ['traffic'], ['traffic//1'],
  ['metrics'], ['metrics/30d'], ['providers'], ['providers/add', 'OpenAI'], ['devices'], ['devices', '添加设备'], ['devices', '创建令牌'], ['clients'], ['clients', '连接 Cursor'],
  ['audit'], ['plugins'], ['plugins/llm-openai'], ['config'], ['config', '更改 log.level'], ['config', '设置一个值'], ['sandbox'], ['agents'], ['cluster'], ['start'], ['start/model'], ['start/clients'], ['start/call'],
];

// Those that say more or less on a phone.
const PHONE = new Set(['', 'chat', 'approvals', 'servers', 'traffic', 'metrics', 'config']);

// Names of things, protocols, units, and what stands for itself.
const STAYS = new Set('yaya MCP JSON API HTTP HTTPS TLS URL CPU QR ID KiB MiB GiB ms min SHA NAME FIELD NATS Ctrl Esc GET POST OpenAI Responses Anthropic Google Mistral OpenRouter DeepSeek Groq xAI Together Fireworks Ollama LM Studio vLLM llama cpp llama.cpp Claude Code Desktop Cursor VS Codex English token plugin approval groups TOML stdio docs md toml hooks install doctor Enter Shift'.toLowerCase().split(' '));

const left = (page, stays) =>
  page.evaluate((stays) => {
    const data = 'bdi, .quoted, .logs, code, pre, kbd, time, .mono, .host, [lang]:not(html), option, datalist, script, style';
    const found = [];
    // What stands in data is data in the names of buttons, too.
    const said = [...document.querySelectorAll(data)].filter((e) => !e.matches('script, style')).map((e) => e.textContent.toLowerCase()).join(' ');
    const known = new Set([...stays, ...(said.match(/[a-z]{2,}/g) ?? [])]);
    const look = (text, what) => {
      const words = (text.replace(/https?:\/\/\S+|--[\w-]+|\b\w+(?:[.:_-][\w*]+)+/g, ' ').match(/[A-Za-z]{2,}/g) ?? []).filter((w) => !known.has(w.toLowerCase()));
      if (words.length) found.push(`${what}: ${text.trim().slice(0, 120)}`);
    };
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const n = walk.currentNode;
      if (n.data.trim() && !n.parentElement.closest(data)) look(n.data, n.parentElement.tagName.toLowerCase());
    }
    for (const e of document.querySelectorAll('[aria-label], [title], [placeholder], [alt]'))
      for (const a of ['aria-label', 'title', 'placeholder', 'alt']) if (e.getAttribute(a) && !e.closest(data)) look(e.getAttribute(a), a);
    return found;
  }, stays);

await run(async () => {
  const stays = [...STAYS, ...env.names];
  const found = [];
  for (const tool of ['srv__good', 'srv__bad']) await fetch(`${env.base}/api/tools/${tool}/call`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"arguments":{}}' });
  const english = await open();
  const session = await newSession(english);
  await say(english, 'ask');
  await english.getByRole('region', { name: /^yaya asks/ }).waitFor();
  for (const [size, viewport] of [['desktop', { width: 1280, height: 800 }], ['phone', { width: 390, height: 844 }]]) {
    const page = await open({ options: { viewport } });
    await page.evaluate(() => localStorage.setItem('yaya.language', 'zh'));
    await page.reload();
    const views = [...VIEWS, [`chat/${session}`]];
    for (const [view, ...buttons] of size === 'desktop' ? views : views.filter((v) => v.length === 1 && PHONE.has(v[0].split('/')[0]))) {
      await page.keyboard.press('Escape'); // what the view before has open
      await page.evaluate((h) => void (location.hash = h), '#/' + view);
      await page.locator('main h1').first().waitFor();
      assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh');
      await page.getByText('正在加载…').first().waitFor({ state: 'detached' });
      for (const b of buttons) await page.getByRole('button', { name: b }).first().click();
      if (buttons.length) await page.getByRole('dialog').or(page.getByLabel('密钥')).first().waitFor();
      for (const x of await left(page, stays)) found.push(`${view} ${buttons.join(' ')} (${size}) ${x}`);
      await checked(page, `${view} in Chinese (${size})`);
      await shot(page, `${view.replaceAll('/', '-')}${buttons.length ? '-open' : ''}-${size}-zh`);
    }
    await page.evaluate(() => void (location.hash = '#/'));
    await page.getByRole('button', { name: '搜索或执行' }).locator('visible=true').first().click();
    await page.getByRole('dialog', { name: '搜索或执行' }).getByRole('option').first().waitFor();
    for (const x of await left(page, stays)) found.push(`the palette (${size}) ${x}`);
    await page.keyboard.press('Escape');
    if (size === 'desktop') {
      await page.getByRole('button', { name: /^通知/ }).click();
      await page.getByRole('region', { name: '通知' }).getByText('broken').first().waitFor();
      for (const x of await left(page, stays)) found.push(`the bell ${x}`);
      await page.keyboard.press('Escape');
      await page.keyboard.press('?');
      await page.getByRole('dialog', { name: '快捷键' }).waitFor();
      for (const x of await left(page, stays)) found.push(`the keys ${x}`);
    }
    await page.context().close();
  }
  assert.deepEqual([...new Set(found)], []);
});
