import { act, assert, checked, env, firstSeen, go, heading, newSession, open, run, say } from './lib.mjs';

await run(async () => {
  const page = await open();
  await heading(page, 'Home');
  await page.getByRole('link', { name: 'Set yaya up' }).click();
  await heading(page, 'Set yaya up');

  // 1. Servers of another client: nothing runs before it was seen and agreed to.
  const cursor = page.getByRole('region', { name: 'Cursor' });
  const first = await firstSeen(page, 'Approve');
  await cursor.getByRole('button', { name: 'Import 1 server' }).click();
  const dialog = page.getByRole('dialog', { name: 'This would run' });
  const agree = dialog.getByRole('button', { name: 'Approve' });
  await dialog.waitFor();
  assert.equal((await dialog.getByRole('group', { name: 'What every would run' }).innerText()).trim(), env.runs);
  assert.ok((await first()).disabled, 'what was clicked before it could be read is no answer');
  assert.ok(!(await agree.evaluate((b) => b === document.activeElement)), 'Enter must not agree');
  await agree.click(); // once it is armed
  await page.getByRole('status').filter({ hasText: '1 server is imported' }).waitFor();
  await page.getByRole('region', { name: 'Servers of yaya' }).getByRole('link', { name: 'every' }).getByText('ready').waitFor(); // live: nothing was loaded anew
  await checked(page, 'the first step');
  await page.getByRole('link', { name: 'Next: Model' }).click();

  // 2. A model: tested before it is used. A key that is refused can be corrected.
  await page.getByRole('button', { name: 'Other Any OpenAI-compatible address' }).click();
  await page.getByLabel('Address').fill(env.wrong);
  await page.getByLabel('Key').fill('sk-canary-123456');
  await page.getByLabel('Model', { exact: true }).fill('m-1');
  await page.getByLabel('Name').fill('My model');
  await page.getByRole('button', { name: 'Save and test' }).click();
  await page.getByRole('status').filter({ hasText: /connection/ }).waitFor();
  await page.getByText('llm-echo is in use.').waitFor();
  await page.getByLabel('Address').fill(env.model);
  await page.getByLabel('Key').fill('sk-canary-123456');
  await page.getByRole('button', { name: 'Save and test' }).click();
  await page.getByText('My model is in use.').waitFor();
  await checked(page, 'a model');
  await page.getByRole('link', { name: 'Next: Clients' }).click();

  // 3. Clients: the change of a file is shown first, and can be undone; and by hand.
  const row = page.getByRole('row').filter({ hasText: 'Cursor' });
  await row.getByText('Not connected').waitFor();
  await row.getByRole('button', { name: 'Connect Cursor' }).click();
  const connect = page.getByRole('dialog', { name: 'Connect Cursor' });
  const diff = await connect.getByRole('group', { name: 'What changes in the file' }).innerText();
  assert.match(diff, /\+.*"mcp"/);
  assert.ok(!(await act('cursor')).includes('yaya'), 'the file was changed before somebody has seen how');
  await checked(page, 'the change of a file');
  await connect.getByRole('button', { name: 'Write it' }).click();
  await row.getByText('Connected', { exact: true }).waitFor();
  assert.ok((await act('cursor')).includes('"mcp"'));
  await row.getByRole('button', { name: 'Disconnect Cursor' }).click();
  await page.getByRole('dialog', { name: 'Disconnect Cursor' }).getByRole('button', { name: 'Write it' }).click();
  await row.getByText('Not connected').waitFor();
  assert.ok(!(await act('cursor')).includes('yaya'));
  for (const [client, text] of [['Claude Code', 'claude mcp add --transport http yaya'], ['Claude Desktop', '"mcp",\n        "serve"'], ['Cursor', '"url"'], ['VS Code', '"type": "http"'], ['Codex', '[mcp_servers.yaya]']]) {
    await page.getByRole('tab', { name: client }).click();
    const shown = await page.getByRole('group', { name: 'Text to copy' }).innerText();
    assert.ok(shown.includes(text), `${client}: ${shown}`);
  }
  await page.getByRole('link', { name: 'Next: First call' }).click();

  // 4. The first call of a client ends the set-up.
  await page.getByText('Waiting for a call.').waitFor();
  await act('call');
  await page.getByRole('status').filter({ hasText: /has called every__echo through yaya in .*: everything works/ }).waitFor();
  await checked(page, 'the first call');
  await page.getByRole('button', { name: 'Add a device' }).click();
  const device = page.getByRole('dialog', { name: 'Add a device' });
  await device.getByLabel('Address of this yaya for the device').fill('https://yaya.example');
  await device.getByRole('button', { name: 'Create a code' }).click();
  await page.getByRole('img', { name: /QR code/ }).waitFor();
  await page.getByText(/^[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}$/).waitFor();
  await page.getByRole('button', { name: 'Done' }).last().click();
  await page.getByRole('button', { name: 'Finish' }).click();
  await heading(page, 'Home');
  assert.equal(await page.getByText('No MCP servers are connected yet').count(), 0);

  // The provider works, and its key is shown to nobody.
  await go(page, 'providers');
  await heading(page, 'Models');
  const model = page.getByRole('row', { name: /My model/ });
  await model.getByText('in use').waitFor();
  await model.getByRole('button', { name: 'Test My model' }).click();
  await model.getByText(/answers in/).waitFor();
  await model.getByText('does not call tools').waitFor();
  await model.getByRole('button', { name: 'Change My model' }).click();
  const edit = page.getByRole('dialog', { name: 'Change My model' });
  assert.equal(await edit.getByLabel('Key').inputValue(), '****');
  await edit.getByLabel('Name').fill('Renamed');
  await edit.getByRole('button', { name: 'Save' }).click();
  const renamed = page.getByRole('row', { name: /Renamed/ });
  await renamed.waitFor();

  // Another model, and back.
  const use = page.getByRole('region', { name: 'Model in use' });
  await use.getByRole('combobox').selectOption('llm-echo');
  await use.getByRole('button', { name: 'Use this model' }).click();
  await page.getByRole('row', { name: /llm-echo/ }).getByText('in use').waitFor();
  await use.getByRole('combobox').selectOption({ label: 'Renamed · m-1' });
  await use.getByRole('button', { name: 'Use this model' }).click();
  await renamed.getByText('in use').waitFor();
  await checked(page, 'models');
  await newSession(page);
  await say(page, 'hi');
  await page.getByText('hello from a real model').waitFor();
  assert.ok(!(await page.content()).includes('canary'));
});
