// Package texts holds the language of the repository: help, errors, documents and
// comments are plain technical English (CONTRIBUTING.md, "Texts"). Its test looks for the
// phrases of that guide that a program can find, in the comments and string literals of
// Go files, which include the descriptions of the OpenAPI documents, in Markdown, in the
// modules of the page, and in the files that build and describe the project.
//
// A failure names the file, the line, the phrase and what to write instead.
//
//	go test ./internal/texts -below kernel   # all that it finds below a folder, as failures
package texts
