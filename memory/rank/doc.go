// Package rank finds and orders the texts of a chat that a question is about: messages of a log, and facts. It knows no
// database: [Keys] are the index keys of a text, [Query.EventKeys] and [Query.MemoryKeys] those of a query, and a
// [Pool] ranks the candidates.
//
//	terms.go, words.go, stem.go   a text's terms, in Chinese and English, from the runs and stems of memory/text
//	synonyms.go                   words of like meaning
//	index.go                      terms as keys of one scope
//	query.go                      the terms, people and time of a question
//	rules.tsv                     what a question asks for, as rules with examples
//	pool.go, score.go             BM25 and the weights for chats
//	feedback.go                   terms that the best texts have in common
//	fuse.go                       one ranking of two: by words, by meaning
//	piece.go, repeat.go           the shown part of a long text; repeated texts
//
// # Decisions
//
// The terms of Chinese are characters and pairs of them. On every set that was measured they found more than a
// dictionary, which must be shipped and knows no names. A text's neighbours count for it: in a chat an answer need not
// repeat the question's words. Indexing windows of messages instead found less.
package rank
