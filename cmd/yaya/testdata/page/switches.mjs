// A tool that is switched off on the page, as a client sees it that is connected.
import { act, assert, go, heading, open, run } from './lib.mjs';

await run(async () => {
  assert.equal(await act('call', 'srv__good'), 'good');
  const page = await open();
  await go(page, 'servers', 'srv', 'tools');
  await heading(page, 'srv');
  const offer = page.getByRole('switch', { name: 'Offer good' });
  assert.equal(await offer.isChecked(), true);
  await offer.click();
  await act('gone', 'srv__good');
  assert.match(await act('call', 'srv__good'), /unknown tool "srv__good"/);
  await page.getByRole('listitem').filter({ hasText: 'good' }).getByText('Not offered').waitFor();
  await page.waitForFunction(() => document.querySelector('[aria-label="Offer good"]')?.checked === false);
  await offer.click();
  await act('back', 'srv__good');
  assert.equal(await act('call', 'srv__good'), 'good');
});
