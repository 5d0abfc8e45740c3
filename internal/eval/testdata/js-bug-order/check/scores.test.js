import assert from 'node:assert/strict';
import { test } from 'node:test';

import { top } from './scores.js';

test('top', () => {
  const all = [9, 10, 2];
  assert.deepEqual(top(all, 2), [10, 9]);
  assert.deepEqual(all, [9, 10, 2]);
});
