// Package screen renders untrusted text for a terminal: markdown as it arrives, code with its
// keywords, and plain text, in colours that are readable on light and dark backgrounds.
//
// Nothing in a text acts on the terminal. Control characters, characters that change the direction
// of text and other invisible ones become visible escapes such as \u{1b}, because every character
// passes through the same function on its way to a line. In prose, which people and models write,
// the joiners stay that scripts such as those of Persian and Hindi need, and soft hyphens and
// variation selectors are left out. The address of a link is always visible.
// No line is wider than asked for. The work grows with the length of the text alone, whatever it
// contains. Every returned line ends the styles that it begins.
//
// [Live] writes an answer to a terminal as it arrives, without taking over the screen.
//
// The package starts no goroutines. Its functions are safe for concurrent use; a [Markdown] and a
// [Live] are not.
package screen
