import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

test('it builds, and again', async () => {
  execFileSync(process.execPath, ['build.js']);
  execFileSync(process.execPath, ['build.js']);
  const { greet } = await import('./dist/greet.js');
  assert.equal(greet('you'), 'hello you, I am yaya');
});
