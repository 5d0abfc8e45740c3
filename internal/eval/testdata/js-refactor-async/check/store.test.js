import assert from 'node:assert/strict';
import { test } from 'node:test';

import { copy } from './copy.js';
import { load, save } from './store.js';

test('promises', async () => {
  await save('a', 1);
  assert.equal(await load('a'), 1);
  await copy('a', 'b');
  assert.equal(await load('b'), 1);
  await assert.rejects(load('x'), /no x/);
  await assert.rejects(copy('x', 'y'), /no x/);
});
