import assert from 'node:assert/strict';
import { test } from 'node:test';

import { merge } from './settings.ts';

test('merge', () => {
  assert.deepEqual(merge({ a: 1, b: true, c: 'x', d: 5 }, { a: undefined, b: false, c: '', d: 0, e: 2 }), { a: 1, b: false, c: '', d: 0, e: 2 });
});
