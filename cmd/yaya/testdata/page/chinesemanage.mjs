// Every view that is translated, in Chinese: no English in what is seen or read out but data, what
// yaya itself says (marked with its language), and terms that stay.
import { assert, checked, env, open, run, shot } from './lib.mjs';

// The views, each with the buttons that are clicked in it. Left out, since they are not translated
// yet: Home, Sessions, Approvals, Servers, Tools, Quarantine, Traffic.
const VIEWS = [
  ['metrics'], ['metrics/30d'], ['providers'], ['providers/add', 'OpenAI'], ['devices'], ['devices', '添加设备'], ['devices', '创建令牌'], ['clients'], ['clients', '连接 Cursor'],
  ['audit'], ['plugins'], ['plugins/llm-openai'], ['config'], ['config', '更改 log.level'], ['config', '设置一个值'], ['sandbox'], ['agents'], ['cluster'], ['start'], ['start/model'], ['start/clients'], ['start/call'],
];

// Names of things, protocols, units, and what stands for itself.
const STAYS = new Set('yaya MCP JSON API HTTP HTTPS TLS URL CPU QR ID KiB MiB GiB ms min SHA NAME FIELD NATS Ctrl Esc GET POST OpenAI Anthropic Google Mistral OpenRouter DeepSeek Groq Ollama LM Studio Claude Code Desktop Cursor VS Codex English token plugin approval groups TOML stdio docs md toml hooks install'.toLowerCase().split(' '));

const left = (page, stays) =>
  page.evaluate((stays) => {
    const data = 'bdi, code, pre, kbd, time, .mono, .host, [lang]:not(html), option, datalist, script, style';
    const found = [];
    const look = (text, what) => {
      const words = (text.replace(/https?:\/\/\S+|--[\w-]+|\b\w+(?:[.:_-][\w*]+)+/g, ' ').match(/[A-Za-z]{2,}/g) ?? []).filter((w) => !stays.includes(w.toLowerCase()));
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
  for (const [size, viewport] of [['desktop', { width: 1280, height: 800 }], ['phone', { width: 390, height: 844 }]]) {
    const page = await open({ options: { viewport } });
    await page.evaluate(() => localStorage.setItem('yaya.language', 'zh'));
    for (const [view, ...buttons] of VIEWS) {
      await page.goto(`${env.base}/#/${view}`);
      await page.reload();
      await page.locator('main h1').first().waitFor();
      assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh');
      await page.getByText('正在加载…').first().waitFor({ state: 'detached' });
      for (const b of buttons) await page.getByRole('button', { name: b }).first().click();
      if (buttons.length) await page.getByRole('dialog').or(page.getByLabel('密钥')).first().waitFor();
      for (const x of await left(page, stays)) found.push(`${view} ${buttons.join(' ')} (${size}) ${x}`);
      if (size === 'desktop') await checked(page, `${view} in Chinese`);
      await shot(page, `${view.replaceAll('/', '-')}${buttons.length ? '-open' : ''}-${size}-zh`);
    }
    await page.context().close();
  }
  assert.deepEqual([...new Set(found)], []);
});
