import { assert, env, firstSeen, go, heading, newSession, open, run, say } from './lib.mjs';

await run(async () => {
  const page = await open();
  await heading(page, 'Home');
  await page.getByRole('link', { name: 'Set yaya up' }).click();
  await heading(page, 'Set yaya up');

  // 1. Servers of another client: nothing runs before it was seen and agreed to.
  await page.getByText('Cursor', { exact: true }).first().waitFor();
  const first = await firstSeen(page, 'Approve');
  await page.getByRole('button', { name: 'Import 1' }).click();
  const dialog = page.getByRole('dialog', { name: 'This would run' });
  const agree = dialog.getByRole('button', { name: 'Approve' });
  await dialog.waitFor();
  assert.equal((await dialog.getByRole('group', { name: 'What every would run' }).innerText()).trim(), env.runs);
  assert.ok((await first()).disabled, 'what was clicked before it could be read is no answer');
  assert.ok(!(await agree.evaluate((b) => b === document.activeElement)), 'Enter must not agree');
  await agree.click(); // once it is armed
  await page.getByRole('status').filter({ hasText: '1 imported' }).waitFor();
  await page.locator('.chip', { hasText: 'every' }).getByText('ready').waitFor(); // live: nothing was loaded anew

  // 2. A model.
  await page.getByRole('button', { name: 'Use another model' }).click();
  const provider = page.getByRole('dialog', { name: 'Add a provider' });
  await provider.getByLabel('Kind').selectOption('llm-openai');
  await provider.getByLabel('Label').fill('My model');
  await provider.getByLabel('base_url').fill(env.model);
  await provider.getByLabel('api_key').fill('sk-canary-123456');
  await provider.getByLabel('model', { exact: true }).fill('m-1');
  await provider.getByRole('button', { name: 'Save' }).click();
  await page.getByText('My model').waitFor();

  // 3. Clients.
  for (const [client, text] of [['Claude Code', 'claude mcp add --transport http yaya'], ['Claude Desktop', '"mcp",\n        "serve"'], ['Cursor', '"url"'], ['VS Code', '"type": "http"'], ['Codex', '[mcp_servers.yaya]']]) {
    await page.getByRole('tab', { name: client }).click();
    const shown = await page.getByRole('group', { name: 'Text to copy' }).innerText();
    assert.ok(shown.includes(text), `${client}: ${shown}`);
  }

  // 4. A device.
  await page.getByRole('button', { name: 'Add a device' }).click();
  const device = page.getByRole('dialog', { name: 'Add a device' });
  await device.getByLabel('Address of this yaya for the device').fill('https://yaya.example');
  await device.getByRole('button', { name: 'Create a code' }).click();
  await page.getByRole('img', { name: /QR code/ }).waitFor();
  await page.getByText(/^[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}$/).waitFor();
  await page.getByRole('button', { name: 'Done' }).last().click();
  await page.getByRole('button', { name: 'Done' }).click();
  await heading(page, 'Home');
  assert.equal(await page.getByText('No MCP servers are connected yet').count(), 0);

  // The provider works, and its key is shown to nobody.
  await go(page, 'providers');
  await heading(page, 'Models');
  const row = page.getByRole('row', { name: /My model/ });
  await row.getByText('active').waitFor();
  await row.getByRole('button', { name: 'Test' }).click();
  await row.getByText(/answers in/).waitFor();
  await row.getByRole('button', { name: 'Change' }).click();
  const edit = page.getByRole('dialog', { name: 'Change My model' });
  assert.equal(await edit.getByLabel('api_key').inputValue(), '****');
  await edit.getByLabel('Label').fill('Renamed');
  await edit.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Renamed').waitFor();
  await newSession(page);
  await say(page, 'hi');
  await page.getByText('hello from a real model').waitFor();
  assert.ok(!(await page.content()).includes('canary'));
});
