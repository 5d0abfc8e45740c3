// A plugin as a program: standard streams, and its end.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { lines } from "../stdio.js";
import { Harness } from "../testing.js";

const program = `
import { Plugin } from ${JSON.stringify(new URL("../index.js", import.meta.url).href)};
const plugin = new Plugin({ name: "subject", version: "1.0.0", category: "tool" });
plugin.tool("loud", { description: "Writes to standard output.", kind: "read" }, () => {
  console.log("logged");
  console.info("informed");
  process.stdout.write("written\\n");
  return "done";
});
plugin.tool("many", { description: "Emits.", kind: "read", input: { count: { type: "integer" } } }, ({ count }) => {
  for (let i = 0; i < count; i++) plugin.send("x.subject.n", "s1", { i, pad: "x".repeat(5000) });
});
plugin.tool("blocks", { description: "Does not return.", kind: "read" }, () => new Promise(() => setInterval(() => {}, 1000)));
plugin.onShutdown(() => console.log("saved"));
await plugin.run();
`;

async function run(body) {
  const folder = mkdtempSync(join(tmpdir(), "plugin-"));
  try {
    writeFileSync(join(folder, "main.mjs"), program);
    await body(await Harness.start([process.execPath, "main.mjs"], { cwd: folder }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("standard output is the protocol's", () =>
  run(async (yaya) => {
    assert.equal((await yaya.call("loud")).display[0].text, "done");
    await yaya.close();
    assert.deepEqual([yaya.stray, yaya.exitCode], [[], 0]);
    for (const said of ["logged", "informed", "written", "saved"]) assert.match(yaya.stderr, new RegExp(said));
  }));

test("events keep their order", () =>
  run(async (yaya) => {
    await yaya.call("many", { count: 1000 });
    assert.deepEqual(yaya.emitted.map((e) => e.payload.i), [...Array(1000).keys()]);
    await yaya.close();
  }));

test("it ends with its input", () =>
  run(async (yaya) => {
    const running = yaya.call("blocks").catch((err) => err);
    await yaya.call("loud"); // the other call runs
    const ended = new Promise((resolve) => yaya.process.on("exit", resolve));
    yaya.process.stdin.end();
    assert.equal(await ended, 0);
    await running;
    await yaya.close();
    assert.match(yaya.stderr, /saved/);
  }));

test("lines are put together from pieces", () => {
  const got = [];
  const feed = lines((line) => got.push(line));
  const bytes = Buffer.from('{"a":"ö€"}\n\n{"b":1}\r\n{"c"');
  for (const byte of bytes) feed(Buffer.from([byte]));
  feed(Buffer.from(":2}\n{}\n"));
  assert.deepEqual(got, ['{"a":"ö€"}', '{"b":1}\r', '{"c":2}', "{}"]);
});
