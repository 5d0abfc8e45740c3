import { assert, env, go, heading, idle, newSession, open, run, say, shot } from './lib.mjs';

// What a browser keeps, as a script of the page could get at it.
const kept = (page) =>
  page.evaluate(async () => {
    const db = await new Promise((ok) => (indexedDB.open('yaya', 1).onsuccess = (e) => ok(e.target.result)));
    const d = await new Promise((ok) => (db.transaction('device').objectStore('device').get('this').onsuccess = (e) => ok(e.target.result)));
    db.close();
    let stolen = '';
    try {
      stolen = String(await crypto.subtle.exportKey('pkcs8', d.key.privateKey));
    } catch (e) {
      stolen = e.name;
    }
    return { extractable: d.key.privateKey.extractable, stolen, record: JSON.stringify(d), local: JSON.stringify({ ...localStorage }), session: JSON.stringify({ ...sessionStorage }), cookie: document.cookie, url: location.href, dom: document.documentElement.outerHTML, history: history.length };
  });

await run(async () => {
  // The first comes with a code behind #, as a QR code has it: it is filled in, taken out
  // of the address, and used once somebody clicks.
  const denied = /401 \(Unauthorized\)|status of 401/;
  const first = await open({ at: '#code=' + env.code, name: 'first', allow: denied });
  await heading(first, 'Enroll this browser');
  assert.equal(await first.getByLabel('Code').inputValue(), env.code);
  assert.ok(!first.url().includes(env.code), 'the code is in the address');
  await first.getByLabel('Name of this browser').fill('First');
  await shot(first, 'enrol-desktop-light');
  await first.getByRole('button', { name: 'Enroll with the code' }).click();
  await heading(first, 'Home');
  await first.getByRole('status').filter({ hasText: 'live' }).waitFor();

  // The second asks, and waits.
  const tokens = [];
  const second = await open({ name: 'second', allow: /401|403|WebSocket/ });
  second.on('response', async (r) => r.url().includes('/auth/register') && r.status() === 200 && tokens.push((await r.json()).device_token));
  await second.getByLabel('Name of this browser').fill('Second <b>\u202ephone');
  await second.getByRole('button', { name: 'Ask for approval' }).click();
  await heading(second, 'Waiting for approval');
  const shown = (await second.getByText(/yaya device approve req_/).innerText()).trim();
  assert.match(shown, /^yaya device approve req_/);
  await shot(second, 'waiting-desktop-light');

  // The first sees it without asking, and lets it in with rights of its choosing.
  await go(first, 'devices');
  await heading(first, 'Devices');
  const row = first.getByRole('row', { name: /Second/ });
  const ask = first.getByRole('region', { name: /^yaya asks: approve Second/ });
  await ask.getByText('It must show the same id as here').waitFor();
  await shot(first, 'devices-asks-desktop-light');
  await ask.getByRole('button', { name: 'Approve …' }).click();
  const dialog = first.getByRole('dialog', { name: 'Approve the device' });
  await dialog.getByLabel(/see devices/).uncheck();
  await dialog.getByLabel(/answer approvals/).check();
  await dialog.getByRole('button', { name: 'Approve', exact: true }).click();
  await row.getByRole('button', { name: /^Revoke Second/ }).waitFor();
  await ask.waitFor({ state: 'detached' });

  // It is in, and sees what its rights are for, and no more.
  await heading(second, 'Home');
  await second.getByRole('status').filter({ hasText: 'live' }).waitFor();
  assert.equal(await second.getByRole('link', { name: 'Settings' }).count(), 0);
  await go(second, 'config');
  await second.getByText(/may not see that: it needs the scope config:read/).waitFor();
  const id = await newSession(second);
  await say(second, 'hello from afar');
  await second.getByText('echo: hello from afar').waitFor();
  await idle(second);

  // What the second says, the first sees as it happens; and the other way round.
  await go(first, 'chat', id);
  await first.getByText('echo: hello from afar').waitFor();
  await say(first, 'and back');
  await second.getByText('echo: and back').waitFor();

  // UI-05: the key cannot be taken away, the token lies nowhere.
  const k = await kept(second);
  assert.equal(k.extractable, false);
  assert.equal(k.stolen, 'InvalidAccessError');
  assert.equal(tokens.length, 1);
  for (const part of ['record', 'local', 'session', 'cookie', 'url', 'dom']) assert.ok(!k[part].includes(tokens[0]), `the token is in ${part}`);

  // R3: it signs for this server, this address and this protocol, and for nothing else.
  await second.route(/\/ui\/(vendor\/)?[a-z]+\.js$/, (r) => r.fulfill({ path: env.page + new URL(r.request().url()).pathname.slice('/ui'.length) })); // as it was written
  const signed = await second.evaluate(async () => {
    const d = await import('/ui/device.js');
    const self = await d.load();
    const at = location.origin.replace(/^http/, 'ws') + '/ws';
    const nonce = new Uint8Array(32);
    const out = {};
    for (const [name, fields] of Object.entries({
      good: ['yaya-device-auth-v1', self.server, at, nonce, '1'],
      audience: ['yaya-device-auth-v1', self.server, 'wss://evil.example/ws', nonce, '1'],
      server: ['yaya-device-auth-v1', 'another', at, nonce, '1'],
      context: ['yaya-device-register-v1', self.server, at, nonce, '1'],
      nonce: ['yaya-device-auth-v1', self.server, at, new Uint8Array(31), '1'],
      more: ['yaya-device-auth-v1', self.server, at, nonce, '1', 'x'],
    })) {
      try {
        await d.answer(self, d.to64(d.record(fields)), at);
        out[name] = true;
      } catch {
        out[name] = false;
      }
    }
    return out;
  });
  assert.deepEqual(signed, { good: true, audience: false, server: false, context: false, nonce: false, more: false });

  // Loaded anew, it is the same device, with another token.
  await second.reload();
  await second.getByText('echo: and back').waitFor();
  assert.equal(tokens.length, 2);
  assert.notEqual(tokens[0], tokens[1]);

  // A token that is refused is exchanged, once for all that were refused at the same
  // moment; one that has expired, as in a laptop that has slept, is replaced by the key.
  let refused = 0;
  const refreshed = [];
  second.on('response', (r) => r.url().includes('/auth/refresh') && refreshed.push(r.status()));
  await second.route('**/v1/sessions?**', (r) => (refused++ === 0 ? r.fulfill({ status: 401, json: { error: { message: 'no' } } }) : r.continue()));
  await go(second, 'chat');
  await second.getByRole('row', { name: /hello from afar/ }).waitFor();
  assert.deepEqual(refreshed, [200]);
  await go(second, 'agents');
  await heading(second, 'Agents');
  refused = 0;
  await second.clock.setFixedTime(Date.now() + 26 * 3600 * 1000);
  await go(second, 'chat');
  for (let i = 0; tokens.length < 3 && i < 1200; i++) await new Promise((ok) => setTimeout(ok, 50)); // of a page whose clock stands still
  await second.getByRole('row', { name: /hello from afar/ }).waitFor();
  assert.deepEqual([refreshed.length, tokens.length], [1, 3]);
  await second.clock.setFixedTime(Date.now());
  await second.unroute('**/v1/sessions?**');
  await go(second, 'chat', id);
  await second.getByText('echo: and back').waitFor();

  // A right that is taken ends at once; then all of them do.
  await go(first, 'devices');
  await row.getByText('1 connection').waitFor();
  await row.getByRole('button', { name: /^Rights of Second/ }).click();
  const rights = first.getByRole('dialog', { name: /Rights of/ });
  await rights.getByLabel(/send messages/).uncheck();
  await rights.getByRole('button', { name: 'Change' }).click();
  await rights.waitFor({ state: 'detached' });
  await say(second, 'may I?');
  await second.getByText(/sessions:write/).first().waitFor();
  await row.getByRole('button', { name: /Revoke/ }).click();
  const at = Date.now();
  await first.getByRole('dialog', { name: 'Revoke' }).getByRole('button', { name: 'Revoke', exact: true }).click();
  await heading(second, 'This browser was revoked');
  await shot(second, 'let-go-desktop-light');
  console.log(`thrown out ${Date.now() - at} ms after the click`);
  assert.equal(await second.getByText('echo: and back').count(), 0, 'what it saw is still there');
  await row.getByText('revoked').first().waitFor();
  await go(first, 'audit');
  await first.getByRole('listitem').filter({ hasText: 'device_revoked' }).getByText(/revoked the device/).waitFor();
});
