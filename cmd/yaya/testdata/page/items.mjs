// GF-10: an answer is shown once, also while pieces of it come behind the event that has
// it, and to who opens the page then. Without a browser: only the items are made.
globalThis.location = /** @type {any} */ ({ pathname: '/', hash: '', search: '', host: '127.0.0.1', protocol: 'http:', href: 'http://127.0.0.1/' });
globalThis.window = globalThis.document = /** @type {any} */ ({ addEventListener() {}, hidden: false });
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
if (wrong.length) throw new Error(wrong.join('\n'));
process.exit(0); // what the page has begun goes on
