// A cluster of three nodes, as the page of north shows it: the log, the nodes, an invitation, a
// removal, sessions of other nodes, and what is missing while a node or the log is down.
import { act, assert, checked, env, go, heading, open, run, shot } from './lib.mjs';

const command = async (dialog) => (await dialog.locator('.command pre').innerText()).trim();
const LOOKS = [];
for (const colorScheme of ['light', 'dark'])
  for (const [size, viewport] of [['desktop', { width: 1280, height: 800 }], ['phone', { width: 390, height: 844 }]]) LOOKS.push([`${size}-${colorScheme}`, { viewport, colorScheme }]);

const EVIL = '<img src=x onerror="document.title=1">\u202egnp.exe';

await run(async () => {
  const page = await open({ allow: /status of 404/ }); // of sessions that are not found
  await heading(page, 'Home');
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByRole('link', { name: 'Cluster' }).click();
  await heading(page, 'Cluster');
  const nodes = page.getByRole('region', { name: 'Nodes' });
  const row = (name) => nodes.getByRole('row').filter({ hasText: name });
  for (const name of ['north', 'south', 'west']) await row(name).getByText('connected').waitFor();
  await row('north').getByText('this one').waitFor();
  assert.equal(await nodes.getByText('this one').count(), 1);
  await row('south').getByText('tablet').waitFor(); // connected there, and nowhere else
  assert.equal(await nodes.getByText('tablet').count(), 1);
  const log = await page.locator('main dl').innerText();
  for (const part of ['Healthy', 'changes can be made', 'nats', 'term', '3 keep the log, 1 may fail', 'is up to date']) assert.ok(log.includes(part), `${part} is not in ${log}`);
  for (const [name, options] of LOOKS) {
    const other = await open({ options });
    await go(other, 'cluster');
    await other.getByText('is up to date').waitFor();
    await shot(other, `cluster-${name}`);
    await checked(other, `the view, ${name}`);
    await other.getByRole('button', { name: 'Remove south' }).click();
    await shot(other, `cluster-remove-${name}`);
    await checked(other, `a removal, ${name}`);
    await other.keyboard.press('Escape');
    await other.getByRole('button', { name: 'Invite a node' }).click();
    await shot(other, `cluster-invite-${name}`);
    await checked(other, `an invitation, ${name}`);
    await other.context().close();
  }

  // An invitation, by the keyboard: the command that the page shows makes east a node.
  const dialog = page.getByRole('dialog');
  await page.getByRole('button', { name: 'Invite a node' }).focus();
  await page.keyboard.press('Enter');
  const field = dialog.getByLabel('Address of this yaya for the new node');
  assert.equal(await field.inputValue(), env.base);
  await dialog.getByText('Other machines do not reach this address').waitFor();
  for (const bad of ['', 'gate.example', 'ftp://gate.example', 'http://gate.example/$(id)', "http://gate.example/';id;'", 'javascript:1']) {
    await field.fill(bad);
    await dialog.getByText('This is not the address of a yaya').waitFor();
    assert.equal(await dialog.locator('.command').count(), 0, `${bad} makes a command`);
  }
  await field.fill('http://[::1]:8787');
  assert.equal(await command(dialog), "yaya cluster invite --url 'http://[::1]:8787'");
  await field.fill(env.base);
  const said = await dialog.innerText();
  for (const part of ['works once', 'expires half an hour', 'as you would a password']) assert.ok(said.includes(part), `${part} is not in ${said}`);
  const printed = await act('run', await command(dialog));
  assert.ok(printed.includes('yaya cluster join yaya-join-'), printed);
  await act('join', /yaya-join-\S+/.exec(printed)[0]);
  await dialog.getByText('east has joined.').waitFor();
  await dialog.getByRole('button', { name: 'Done' }).click();
  await row('east').getByText('connected').waitFor();

  // A session of another node: where it is, in the list, and its conversation when it is opened.
  await go(page, 'chat');
  const there = page.getByRole('row').filter({ hasText: 'on south' });
  await there.waitFor();
  await shot(page, 'cluster-sessions');
  await there.getByRole('link').click();
  await page.getByText('echo: hello').waitFor();
  await page.getByRole('textbox', { name: 'Message' }).fill('and from north');
  await page.keyboard.press('Enter');
  await page.getByText('echo: and from north').waitFor();
  await shot(page, 'cluster-session');
  await checked(page, 'a session of another node');
  await go(page, 'chat', 'sess_of-nobody');
  await page.getByText('Session not found.').waitFor();

  // A node fails: its sessions are missing, and the view says since when it is gone.
  await act('kill');
  await go(page, 'chat');
  await page.getByRole('status').filter({ hasText: 'Sessions are missing: west does not answer.' }).waitFor();
  await checked(page, 'missing sessions');
  await go(page, 'chat', 'of-west');
  await page.getByText('It may be on west').waitFor();
  await go(page, 'cluster');

  // A removal: what it means, its command, and the node leaves the view while it is looked at.
  await page.getByRole('button', { name: 'Remove west' }).click();
  const means = await dialog.innerText();
  for (const part of ['cannot start again as a node', 'Its sessions, servers and settings stay', 'rotate-keys --drop-earlier', 'credentials of the NATS servers']) assert.ok(means.includes(part), `${part} is not in ${means}`);
  await act('run', await command(dialog));
  await dialog.getByText('west is no longer a node.').waitFor();
  await dialog.getByRole('button', { name: 'Done' }).click();
  await row('west').waitFor({ state: 'detached' });
  assert.equal(await nodes.getByRole('row').count(), 1 + 3);

  // The log loses its majority, and gets it back.
  await act('lose');
  await page.getByRole('alert').filter({ hasText: /No changes can be made since .*reaches no majority/ }).waitFor();
  await page.locator('main dl').getByText('no quorum').waitFor();
  await page.locator('main dl').getByText('3 keep the log, 2 have to run').waitFor();
  await shot(page, 'cluster-lost');
  await checked(page, 'no quorum');
  await act('regain');
  await page.getByRole('alert').waitFor({ state: 'detached' });
  await page.getByText(/changes can be made since/).waitFor();

  // Whatever another node says of itself is text, and no command.
  const fake = await open({ options: LOOKS[3][1] });
  await heading(fake, 'Home');
  await fake.route('**/api/cluster', async (r) => {
    const c = await (await r.fetch()).json();
    const m = { ...c.members[0], name: EVIL, route: EVIL, devices: Array(9).fill(EVIL).map((x, i) => x + i) };
    await r.fulfill({ json: { ...c, behind_ms: 12345, members: [...c.members, m, { name: 'late', joined_at: m.joined_at }], status: { ...c.status, leader: EVIL } } });
  });
  await go(fake, 'cluster');
  await fake.getByText('has had no news for 12.3 s').waitFor();
  await fake.getByText('and 5 more').waitFor();
  await fake.getByText('not yet').waitFor();
  await shot(fake, 'cluster-hostile');
  await checked(fake, 'hostile names');
  await fake.getByRole('button', { name: 'Remove <img' }).click();
  assert.equal(await fake.getByRole('dialog').locator('.command').count(), 0);
  assert.equal(await fake.locator('main img').count(), 0);
  assert.equal(await fake.title(), 'Cluster · yaya');
});
