// The inbox: questions with what would run, answered by pointer and by keys, here and elsewhere.
import { act, assert, checked, env, go, heading, newSession, open, reject, run, say, shot } from './lib.mjs';

await run(async () => {
  const page = await open();
  const question = page.getByRole('region', { name: /^yaya asks/ });
  const list = page.getByRole('navigation', { name: 'Questions' });
  const ready = () => page.locator('button:enabled', { hasText: 'Approve once' }).waitFor();
  const ask = async (text) => {
    const id = await newSession(page);
    await say(page, text);
    await question.waitFor();
    return id;
  };

  // A command is shown as it was typed, with the rule that asks.
  const first = await ask('command');
  await go(page, 'approvals');
  await heading(page, 'Approvals');
  await page.getByRole('region', { name: 'yaya asks: Run this command?' }).waitFor();
  assert.equal(await question.getByRole('group', { name: 'The command, all of it' }).innerText(), 'echo "a & b" <x>');
  assert.match(await question.innerText(), /Refused in \d+:\d\d if nobody answers/);
  assert.match(await question.innerText(), /Rule: echoes ask/);
  assert.match(await question.innerText(), /Built into yaya, not from a server/);
  await question.getByText('All arguments').click();
  assert.match(await question.getByRole('group', { name: 'Arguments, all of them' }).innerText(), /"command": "echo \\"a & b\\" <x>"/);

  // A server's tool has fields, and what the server says of it is marked as such.
  await ask('server');
  await ask('patch');
  await go(page, 'approvals');
  await list.getByRole('link').nth(2).waitFor();
  assert.match(await list.innerText(), /2 files, \+2 −1/);
  await list.getByRole('link', { name: /weather/ }).click();
  await page.getByRole('region', { name: 'yaya asks: Run weather?' }).waitFor();
  assert.match(await question.innerText(), /city\s+Ulm & around/);
  assert.match(await question.innerText(), /May delete or overwrite[^]*Nobody has checked it/);
  assert.match(await question.innerText(), /From the server srv/);

  // Keys: j goes on to the next; the heading has the focus, not a button.
  await page.keyboard.press('j');
  await page.getByRole('region', { name: 'yaya asks: Change these files?' }).waitFor();
  await page.waitForFunction(() => document.activeElement?.tagName === 'H2');
  assert.match(await question.locator('.diff').first().innerText(), /one[^]*ONE/);
  assert.equal(await question.locator('.diff .a em').first().innerText(), 'ONE');
  for (const [name, options] of [['desktop-light', {}], ['phone-dark', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }]]) {
    const other = await open({ at: page.url().split('/').slice(3).join('/'), options });
    await other.locator('button:enabled', { hasText: 'Approve once' }).waitFor();
    await shot(other, `approvals-patch-${name}`);
    await checked(other, `a question, ${name}`);
    await other.context().close();
  }

  // No key counts in the first half second, nor while somebody writes; then n asks for a reason.
  await ready();
  await page.keyboard.press('n');
  await page.keyboard.type('yes, say no');
  assert.equal(await question.getByLabel('Reason').inputValue(), 'yes, say no', 'a key was an answer while somebody wrote');
  await page.keyboard.press('Enter');
  await list.getByRole('link', { name: /apply_patch[^]*Rejected by owner/ }).waitFor();
  // What is left is the next question.
  await page.getByRole('region', { name: 'yaya asks: Run this command?' }).waitFor();
  await ready();
  await page.keyboard.press('y');
  await page.getByRole('region', { name: 'yaya asks: Run weather?' }).waitFor();
  await list.getByRole('link', { name: /shell[^]*Approved by owner/ }).waitFor();

  // Answered elsewhere, while it is looked at: how is said in its place.
  await list.getByRole('link', { name: /weather/ }).click();
  await page.waitForURL(/approvals\/appr_/);
  await act('answer');
  const past = page.getByRole('region', { name: 'An answered question' });
  await past.getByText('Approved for the session by owner').waitFor();
  await shot(page, 'approvals-ended-desktop-light');
  await checked(page, 'an answered question');
  await go(page, 'approvals');
  await page.getByText('No calls wait for approval.').waitFor();

  // Nobody answers.
  await act('short', first);
  await list.getByRole('link', { name: /shell[^]*Refused: nobody answered in time/ }).waitFor();

  // The single keys can be turned off.
  await ask('command');
  await page.evaluate(() => localStorage.setItem('yaya.keys', 'off'));
  await go(page, 'approvals');
  await page.reload();
  await question.waitFor();
  await ready();
  await page.keyboard.press('y');
  await page.keyboard.press('j');
  assert.equal(await question.count(), 1);
  assert.equal(await question.locator('kbd').count(), 0);
  await reject(question, 'enough');
  await page.getByText('No calls wait for approval.').waitFor();

  // The same in Chinese.
  const { default: zh } = await import('node:fs').then((fs) => ({ default: JSON.parse(fs.readFileSync(env.zh, 'utf8')) }));
  const chinese = await open({ at: '#/approvals', options: { locale: 'zh-CN' } });
  await chinese.getByText(zh['No calls wait for approval.']).waitFor();
  await shot(chinese, 'approvals-desktop-light-zh');
});
