import assert from 'node:assert/strict';
import { test } from 'node:test';

import { chunk, last } from './lists.js';

test('chunk', () => {
  const all = [1, 2, 3, 4, 5];
  assert.deepEqual(chunk(all, 2), [[1, 2], [3, 4], [5]]);
  assert.deepEqual(chunk([], 3), []);
  assert.deepEqual(chunk(all, 9), [all]);
  assert.equal(last(all), 5);
  for (const size of [0, -1, 1.5, NaN, '2']) assert.throws(() => chunk(all, size), RangeError);
});
