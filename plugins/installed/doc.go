// Package installed keeps the plugins that a user has installed.
//
// Below the data folder, plugins/<name>/ has plugin.lock, which says where the plugin came
// from and which digest its files have, the folder <version> with a copy of its files, and
// state/, which the plugin may write. An editable plugin stays where it is, and has no digest.
//
// [Store.Install] keeps only the files with the digest that the user has agreed to, and
// [Entry.Verify] refuses others before each start.
package installed
