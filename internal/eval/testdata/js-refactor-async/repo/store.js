const kept = new Map();

export function save(key, value, done) {
  setImmediate(() => {
    kept.set(key, value);
    done(null);
  });
}

export function load(key, done) {
  setImmediate(() => (kept.has(key) ? done(null, kept.get(key)) : done(new Error(`no ${key}`))));
}
