// Package rank finds and orders the texts of a chat that a question is about: messages of a log, and facts. It knows no
// database: [Keys] says what a text is to be stored under, [Query.EventKeys] and [Query.MemoryKeys] what to look for,
// and a [Pool] ranks what came back.
//
//	terms.go, words.go, stem.go   a text's terms, in Chinese and English
//	kin.go                        words that are said for each other
//	index.go                      terms as keys of one scope
//	query.go, dates.go            what a question asks: words, people, a time
//	pool.go, score.go             BM25 and what a chat adds to it
//	feedback.go                   what the best texts have in common
//	fuse.go                       one ranking of two: by words, by meaning
//	piece.go, same.go             what is shown of a long text, and what says the same
//
// # Decisions
//
// Characters and pairs of them, not words, are the terms of Chinese: on every set that this was measured with they found
// more than a dictionary, which has to be shipped and knows no names.
// What a text's neighbours say counts for it: in a chat an answer need not repeat the question's words. Indexing windows of
// messages instead found less.
package rank
