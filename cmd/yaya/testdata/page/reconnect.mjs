import { act, assert, idle, newSession, open, run, say } from './lib.mjs';

await run(async () => {
  const page = await open({ allow: /ERR_CONNECTION_REFUSED|WebSocket|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|ERR_INCOMPLETE/ });
  const id = await newSession(page);
  await say(page, 'before');
  await page.getByText('echo: before').waitFor();
  await idle(page);
  for (let round = 0; round < 3; round++) {
    await act('kill');
    await page.getByRole('status').filter({ hasText: 'connecting' }).waitFor();
    await say(page, `while it was away ${round}`);
    await page.getByText('the message is sent as soon as possible').waitFor();
    await act('start', `${id} from elsewhere ${round}`);
    await page.getByText(`echo: from elsewhere ${round}`).waitFor();
    await page.getByText(`echo: while it was away ${round}`).waitFor();
    await page.getByRole('status').filter({ hasText: 'live' }).waitFor();
    await idle(page);
    await say(page, `after ${round}`);
    const answer = page.getByText(`echo: after ${round}`);
    await answer.first().waitFor(); // for a moment, what has come so far stands beside the whole
    await idle(page);
    assert.equal(await answer.count(), 1, 'the answer stands there once');
  }
  const seen = await page.getByRole('article', { name: 'You' }).locator('.said').allInnerTexts();
  // Which of the two came first, the one from elsewhere or the one that waited, is open.
  const mine = ['before', 'while it was away 0', 'after 0', 'while it was away 1', 'after 1', 'while it was away 2', 'after 2'];
  const want = [...mine, 'from elsewhere 0', 'from elsewhere 1', 'from elsewhere 2'].sort();
  assert.deepEqual(seen.filter((x) => !x.startsWith('from')), mine);
  assert.deepEqual([...seen].sort(), want);
  const { messages } = await act('messages', id);
  assert.deepEqual(messages.filter((m) => m.role === 'user').map((m) => m.parts[0].text).sort(), want, 'yaya has each of them once');
});
