// Package toolsearch finds the tools that fit a few words, by BM25 over the fields of their
// definitions (BM25F: the frequencies of a word are weighted by field before they saturate).
//
// Words are split where programmers join them (createIssue, create_issue, issues2), reduced to
// their stems by Snowball's English stemmer, and widened by the synonyms of words.txt: "open a
// pull request" finds create_merge_request.
//
// # Bounds
//
// Definitions and queries are hostile. An [Index] reads at most 64 KB of a tool's text and
// keeps at most 1,024 terms of it; a query counts with its first 32 terms. A tool that repeats
// a word, or lists all words, gains little: frequencies saturate, and long texts count less.
//
// [Embeddings] rank by meaning as well, if there is a model for that: the rankings are fused, and
// words alone decide while vectors are missing.
//
// An Index does not change after [New], and is safe for concurrent use.
package toolsearch
