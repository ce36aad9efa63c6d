// Package rank finds and orders the texts of a chat that a question is about: messages of a log, and facts. It knows
// no database. [Keys] are the index keys of a text, [Query.EventKeys] and [Query.MemoryKeys] those of a query. A [Pool]
// ranks the candidates by BM25 and weights for chats.
//
// The terms of Chinese are characters and pairs of them. On every set that was measured they found more than a
// dictionary, which must be shipped and knows no names. A text's neighbours count for it: in a chat an answer need not
// repeat the question's words. Indexing windows of messages instead found less.
package rank
