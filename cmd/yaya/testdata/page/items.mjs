// GF-10: an answer is shown once, also while pieces of it come behind the event that has
// it, and to who opens the page then. Without a browser: only the items are made.
globalThis.location = /** @type {any} */ ({ pathname: '/', hash: '', search: '', host: '127.0.0.1', protocol: 'http:', href: 'http://127.0.0.1/' });
globalThis.window = globalThis.document = /** @type {any} */ ({ addEventListener() {}, hidden: false, head: { querySelector: () => ({}) } });
globalThis.localStorage = globalThis.sessionStorage = /** @type {any} */ ({ getItem: () => null, setItem() {}, removeItem() {} });
globalThis.history = /** @type {any} */ ({ replaceState() {}, pushState() {} });
globalThis.addEventListener = () => {};
const { Items } = await import(process.argv[2] + '/items.js');
const items = new Items();
const wrong = [];
const see = (/** @type {string} */ when, /** @type {string} */ text, /** @type {string} */ want) => {
  const got = items.unsaid(text);
  if (got !== want) wrong.push(`${when}: unsaid(${JSON.stringify(text)}) is ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
};
items.take({ type: 'turn.started', data: {} });
see('while it is written', 'the whole', 'the whole');
items.take({ type: 'llm.call.response', data: { text: 'the whole of it\n' } });
see('behind its event', 'the whole', '');
see('behind its event, all of it', 'the whole of it', '');
see('the next answer', 'and more', 'and more');
items.take({ type: 'assistant.message.done', data: { content: 'the whole of it\n' } });
if (items.list.length !== 1) wrong.push(`there are ${items.list.length} items, want one`);
see('in the next turn', 'the whole', 'the whole');

// Neighbouring calls share a frame; a call is cut off when its turn ends first, an answer is its
// call's if only one is open, and what was written when a turn was stopped stays.
const calls = new Items();
calls.take({ type: 'turn.started', data: {} });
for (const id of ['a', 'b']) calls.take({ type: 'tool.call.request', data: { id, name: 'shell', args: {} }, cursor: { epoch: 'e', seq: id === 'a' ? 1 : 2 } });
calls.take({ type: 'approval.response', data: { response: 'approve' } });
calls.take({ type: 'tool.call.result', data: { id: 'a', ok: true } });
calls.take({ type: 'approval.response', data: { response: 'reject', feedback: 'no' } });
calls.take({ type: 'llm.call.response', data: { text: 'half', stop_reason: 'interrupted' } });
calls.take({ type: 'turn.cancelled', data: {} });
const is = (/** @type {string} */ what, /** @type {unknown} */ got, /** @type {unknown} */ want) => {
  if (JSON.stringify(got) !== JSON.stringify(want)) wrong.push(`${what}: ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
};
const [one, two, note, half] = calls.list;
is('the kinds', calls.list.map((i) => i.kind), ['tool', 'tool', 'note', 'assistant', 'note']);
is('the frame of the first', [one.after, one.more], [undefined, true]);
is('the frame of the second', [two.after, two.more], [true, undefined]);
is('an answer that may be of either', [one.answer, note.text], [undefined, 'Approved']);
is('the answer', two.answer, { response: 'reject', feedback: 'no' });
is('what is cut off', [one.cut, two.cut], [false, true]);
is('what was written', [half.text, half.stopped], ['half', true]);

// Patches: by file, with numbers and marked words; nothing of the text is lost.
const { files, isPatch } = await import(process.argv[2] + '/diff.js');
const [f, g] = files('diff --git a/x.go b/x.go\n--- a/x.go\n+++ b/x.go\n@@ -3,2 +3,2 @@ func\n-const v = "2.3.1"\n+const v = "2.4.0"\n rest\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+--- no header\n+beyond its numbers\n');
is('the first file', [f.name, f.added, f.removed], ['x.go', 1, 1]);
is('its lines', f.lines.map((l) => l.kind + l.a + ',' + l.b), ['@0,0', '-3,0', '+0,3', ' 4,4']);
is('the words', f.lines.filter((l) => l.from !== undefined).map((l) => l.text.slice(l.from, l.to)), ['3.1', '4.0']);
is('the second file', [g.name, g.added, g.lines.at(-1).text], ['new.txt', 2, 'beyond its numbers']);
const [k] = files('*** Begin Patch\n*** Update File: a/b.txt\n@@\n-x\n+y\n*** End Patch\n');
is('the other format', [k.name, k.added, k.removed], ['a/b.txt', 1, 1]);
is('no patch', [isPatch('a\n- b\n+ c'), isPatch('--- a\n+++ b\n')], [false, true]);
is('what is no patch is shown', files('Approve everything\n+++ \n').flatMap((x) => x.lines.map((l) => l.text)), ['Approve everything', '+++ ']);

// A model that is asked again, and one that answers in its place, are quiet notes.
const models = new Items();
models.take({ type: 'llm.call.retry', data: { attempt: 1, wait_s: 0.57, error: 'overloaded <b>' } });
models.take({ type: 'llm.call.fallback', data: { failed: { provider: 'a', model: 'm' }, next: { provider: 'b', model: 'n/o' }, error: 'down' } });
is('the notes about models', models.list.map((i) => [i.kind, i.tone, i.text]), [
  ['note', '', 'The model did not answer (overloaded <b>). It was asked again after 0.6 s.'],
  ['note', '', 'a/m cannot answer (down): b/n/o answers instead.'],
]);

// Code: the pieces together are the text, and hostile ones take no time to speak of.
const { command, pieces } = await import(process.argv[2] + '/code.js');
for (const text of ['func f(a int) { return "x\\"" + 0x1f // y\n}', "it's 'a' /* never ends", '`${x}` # "', "'\\'".repeat(8000), '"\\"'.repeat(8000), '/*'.repeat(9000), 'a '.repeat(9000)]) {
  for (const l of ['go', 'py', 'sql', 'html', 'json', 'nothing']) is(l, pieces(text, l).map(([, s]) => s).join('') === text, true);
  const flat = (/** @type {any} */ c) => (Array.isArray(c) ? c.map(flat).join('') : typeof c === 'object' ? flat(c.props.children) : String(c));
  is('a command', flat(command(text)) === text, true);
}
is('a function', pieces('func main()', 'go'), [['k', 'func'], ['', ' '], ['fn', 'main'], ['', '()']]);
if (wrong.length) throw new Error(wrong.join('\n'));
process.exit(0); // what the page has begun goes on
