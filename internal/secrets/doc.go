// Package secrets keeps secrets in one sealed file.
//
// The file is secrets.sealed in the data folder, 0600: a header in the clear and, sealed
// with XChaCha20-Poly1305, all names and values together. Every change seals the whole
// again with a fresh nonce, and replaces the file at one moment. The header is
// authenticated with the rest.
//
// The key that seals is never in the data folder. It is one of, decided when the file is
// made and written in its header:
//
//   - derived with argon2id from a passphrase, if there is one;
//   - 32 random bytes in the keychain of the operating system, if that keeps a probe;
//   - 32 random bytes in secrets.key in the configuration folder, 0600.
//
// A file that was made without a passphrase moves to the passphrase with the first change
// that is made with one. [Store.Rekey] moves a file to another key. A lost or different
// key, a wrong passphrase, and a damaged, cut or modified file are errors that name file
// and remedy, and nothing is overwritten.
//
// A [Store] reads lazily, caches the content, and reads again when the file has changed: a
// look-up costs one stat. Several processes may use a file at the same time; a process that
// changes it holds secrets.lock, for which others wait half a minute at most. A look-up
// waits for no change: at most for the key, if nobody has fetched it yet. It is safe for
// concurrent use.
package secrets
