import assert from 'node:assert/strict';
import { test } from 'node:test';

import { attempt, type Result } from './result.ts';

test('attempt', async () => {
  const good: Result<number> = attempt(() => 3) as Result<number>;
  assert.deepEqual(good, { ok: true, value: 3 });
  const bad = attempt(() => {
    throw 'boom';
  }) as Result<never>;
  assert.ok(!bad.ok && bad.error instanceof Error && bad.error.message === 'boom');
  assert.deepEqual(await attempt(async () => 'x'), { ok: true, value: 'x' });
  const late = (await attempt(async () => {
    throw new TypeError('late');
  })) as Result<never>;
  assert.ok(!late.ok && late.error instanceof TypeError);
});
