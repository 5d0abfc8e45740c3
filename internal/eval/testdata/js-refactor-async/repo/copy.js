import { load, save } from './store.js';

// copy copies a value to another key, and calls done with an error or null.
export function copy(from, to, done) {
  load(from, (err, value) => (err ? done(err) : save(to, value, done)));
}
