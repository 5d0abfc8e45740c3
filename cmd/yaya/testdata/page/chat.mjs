import { readFileSync, writeFileSync } from 'node:fs';
import { assert, checked, env, firstSeen, go, heading, idle, newSession, open, reject, run, say, shot } from './lib.mjs';

await run(async () => {
  const page = await open();
  const id = await newSession(page);
  const question = page.getByRole('region', { name: /^yaya asks/ });

  // Markdown becomes elements while it is written.
  const live = page.evaluate(() => new Promise((seen) => { // each change, before it is drawn: a busy machine draws few
    const watch = new MutationObserver(() => document.querySelector('.msg.live') && (watch.disconnect(), seen()));
    watch.observe(document.body, { subtree: true, childList: true });
  }));
  await say(page, 'write');
  await live;
  await page.locator('.msg.live').waitFor({ state: 'detached' });
  const answer = page.getByRole('article', { name: 'yaya' }).last();
  assert.equal(await answer.locator('strong').innerText(), 'bold');
  assert.equal(await answer.locator('li').count(), 2);
  assert.equal(await answer.getByRole('heading', { name: 'Title' }).count(), 1);
  assert.equal(await answer.getByRole('link').getAttribute('rel'), 'noopener noreferrer');
  await idle(page);

  // A change: what would be done is shown whole; what was done is a diff.
  const first = await firstSeen(page, 'Approve');
  await say(page, 'patch it');
  await question.waitFor();
  assert.match(await question.innerText(), /Change these files\?/);
  assert.match(await question.innerText(), /\+\s*ONE/);
  const approve = question.getByRole('button', { name: 'Approve once' });
  assert.ok((await first()).disabled, 'it is armed at once (UI-07)');
  assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'TEXTAREA', 'the focus is where it was (UI-07)');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: /Approvals/ }).getByLabel('1 waiting').waitFor();
  await approve.click();
  await page.getByText('It is changed.').waitFor();
  await question.waitFor({ state: 'detached' });
  assert.equal(readFileSync(env.workspace + '/a.txt', 'utf8'), 'ONE\ntwo\n');
  const tool = page.locator('details.tool', { hasText: 'apply_patch' });
  await tool.locator('summary').click();
  await tool.getByRole('button', { name: 'Show' }).first().click();
  await tool.locator('.diff .a', { hasText: 'ONE' }).nth(1).waitFor(); // the call's, and the artifact's
  const rail = page.getByRole('complementary', { name: 'About this session' });
  await rail.getByText('a.txt').waitFor();
  await idle(page);

  // The model of the session: the window beside what the last request took of it, and another model.
  await rail.getByText(/of .* tokens in the last request/).waitFor();
  const model = rail.getByRole('combobox', { name: 'Model of this session' });
  assert.match(await model.locator('option').first().innerText(), /^Model in use: /);
  await model.selectOption('second');
  await page.waitForFunction(async (id) => (await (await fetch('/v1/sessions/' + id)).json()).model === 'second', id);
  await say(page, 'who are you');
  await page.getByText('the second model').waitFor();
  await idle(page);
  await model.selectOption('');
  await page.waitForFunction(async (id) => !(await (await fetch('/v1/sessions/' + id)).json()).model, id);

  // The plan of the agent, and its last change undone.
  await say(page, 'plan');
  await rail.getByRole('heading', { name: 'Plan' }).waitFor();
  assert.deepEqual(await rail.locator('.plan li').allInnerTexts(), ['look at it', 'change <b>it</b>', 'check']);
  assert.equal(await rail.locator('.plan li', { hasText: 'change' }).getByRole('img', { name: 'in progress' }).count(), 1);
  await idle(page);
  await checked(page, 'a session with a plan');
  await shot(page, 'session-plan-desktop-light');
  await rail.getByRole('button', { name: 'Undo the last change' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Undo the last change' }).click();
  await page.getByText('1 file is as before').waitFor();
  assert.equal(readFileSync(env.workspace + '/a.txt', 'utf8'), 'one\ntwo\n');
  await page.getByText('The last change of files was undone.').waitFor();
  await rail.getByText('a.txt').waitFor({ state: 'detached' });

  // An edit is a diff of its two texts: a line that both have is not one that goes or comes (USE-4), and none
  // is taken for the head of a file.
  writeFileSync(env.workspace + '/a.txt', 'one\n-- two\n');
  const signs = (/** @type {import('playwright-core').Locator} */ l) => l.locator('.diff').first().locator('div > :nth-child(3)').allInnerTexts();
  await say(page, 'edit it');
  await question.locator('.diff').waitFor();
  assert.deepEqual(await signs(question), ['', ' ', '−', '+']);
  assert.match(await question.locator('.diff').innerText(), /-- two[^]*\+\+ 2;\s+end/);
  await approve.click();
  await page.getByText('It is edited.').waitFor();
  const edit = page.locator('details.tool', { hasText: 'edit' });
  assert.match(await edit.locator('summary').innerText(), /a\.txt[^]*\+1\s*−1/);
  await edit.locator('summary').click();
  await edit.locator('.diff').first().waitFor();
  assert.deepEqual(await signs(edit), ['', ' ', '−', '+']);
  assert.match(await rail.getByRole('listitem').filter({ hasText: 'a.txt' }).innerText(), /\+1\s*−1/);
  await idle(page);

  // Who has scrolled up and says something is at the end again.
  const list = page.getByRole('log', { name: 'Conversation' });
  await list.hover();
  await page.mouse.wheel(0, -5000);
  await page.waitForFunction(() => document.querySelector('.virtual').scrollTop === 0);
  await say(page, 'am I at the end');
  await idle(page);
  await page.waitForFunction(() => {
    const v = document.querySelector('.virtual');
    return v.innerText.includes('echo: am I at the end') && v.scrollHeight > v.clientHeight + 50 && v.scrollHeight - v.clientHeight - v.scrollTop < 2;
  });

  // No, and why: the model is told, and the turn goes on.
  await say(page, 'reject that');
  await question.waitFor();
  await reject(question, 'not on a Sunday');
  const denied = page.locator('details.tool', { hasText: 'echo no' });
  await denied.getByText('denied').waitFor();
  await denied.locator('summary').click();
  await denied.getByText('Rejected: not on a Sunday').waitFor();
  await idle(page);

  // Yes for the session: the same call is not asked about again. It is answered in the
  // inbox, by another tab of the same browser.
  const inbox = await page.context().newPage();
  await inbox.goto(env.base + '/#/approvals');
  await heading(inbox, 'Approvals');
  await say(page, 'session please');
  await inbox.getByRole('region', { name: 'yaya asks: Run this command?' }).getByRole('button', { name: 'Approve in this session' }).click();
  await inbox.getByText('No calls wait for approval.').waitFor();
  await page.getByText('twice').last().waitFor();
  assert.equal(await page.locator('details.tool', { hasText: 'shell' }).count(), 3);
  await idle(page);
  await inbox.close();

  // The same question twice is one, with one answer for both (Y-143).
  const twin = '/tool far__twin {}';
  await say(page, twin + '\n' + twin);
  await question.getByText('Asked 2 times').waitFor();
  assert.equal(await question.count(), 1);
  await question.getByRole('button', { name: 'Approve once' }).click();
  await question.waitFor({ state: 'detached' });
  await idle(page);
  await page.getByText(/two of a kind\s*two of a kind/).waitFor(); // both calls ran

  // While a turn runs: one message waits, one joins it, and Escape ends it.
  await say(page, 'slow one');
  await page.locator('.msg.live').waitFor();
  await say(page, 'a later one');
  await page.getByRole('region', { name: 'Queue' }).getByText('a later one').waitFor();
  await page.getByRole('region', { name: 'Queue' }).getByRole('button', { name: 'Remove from the queue' }).click();
  await page.getByRole('region', { name: 'Queue' }).waitFor({ state: 'detached' });
  await say(page, 'steer this', 'Control+Enter');
  await page.getByRole('article', { name: 'You' }).filter({ hasText: 'steer this' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByText(/The turn was cancelled/).waitFor();
  // What had been written stays, and says that it was stopped.
  // A message that came too late to join has a turn of its own behind it.
  const stopped = page.getByRole('article', { name: 'yaya' }).filter({ hasText: 'word word' });
  await stopped.getByText('Stopped here').waitFor();
  await idle(page);

  // A file goes along.
  await page.locator('input[type=file]').setInputFiles({ name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('in a file') });
  await page.locator('.chip', { hasText: 'note.txt' }).waitFor();
  await say(page, 'with a file');
  await page.getByRole('article', { name: 'You' }).filter({ hasText: 'with a file' }).getByRole('button', { name: /note.txt/ }).waitFor();
  await idle(page);

  // What is written and not sent is there again, also after a reload.
  // The view is left at once: before anything is drawn.
  await page.getByRole('textbox', { name: 'Message' }).evaluate((box) => {
    box.value = 'half a thought';
    box.dispatchEvent(new Event('input', { bubbles: true }));
    location.hash = '#/chat';
  });
  await heading(page, 'Sessions');
  await go(page, 'chat', id);
  assert.equal(await page.getByRole('textbox', { name: 'Message' }).inputValue(), 'half a thought');
  await page.reload();
  assert.equal(await page.getByRole('textbox', { name: 'Message' }).inputValue(), 'half a thought');
  await page.getByRole('textbox', { name: 'Message' }).fill('');

  // A sub-agent can be watched where it works.
  await say(page, '/tool agent {"goal":"say hi to the page"}');
  await question.getByRole('button', { name: 'Approve once' }).click();
  await question.waitFor({ state: 'detached' });
  await idle(page);
  await go(page, 'agents');
  await page.getByRole('link', { name: /::agent::/ }).first().click();
  await page.getByText('say hi to the page').first().waitFor();
  await page.getByRole('link', { name: /works for/ }).click();
  await page.getByRole('textbox', { name: 'Message' }).waitFor();

  // The list has it, by its first message; a fork goes on from where it is.
  await page.getByRole('button', { name: 'Fork' }).click();
  await page.waitForFunction((was) => !location.hash.endsWith(was) && location.hash.startsWith('#/chat/'), encodeURIComponent(id));
  await page.getByRole('article', { name: 'yaya' }).getByText('echo: say hi to the page').first().waitFor();
  await go(page, 'chat');
  await heading(page, 'Sessions');
  await page.getByRole('row', { name: /write/ }).first().waitFor();
  await page.getByRole('row', { name: /sub-agent/ }).first().waitFor();
  await page.getByRole('searchbox', { name: 'Filter the sessions' }).fill('nothing like it');
  await page.getByText('No sessions match.').waitFor();
  // Another look from the start shows the same conversation.
  await go(page, 'chat', id);
  await page.getByRole('article', { name: 'yaya' }).getByText('echo: say hi to the page').first().waitFor();
});
