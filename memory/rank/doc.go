// Package rank finds and orders the messages and facts that a question is about. It knows no database.
//
// The terms of Chinese are characters and pairs of them, which found more on every measured set than a dictionary,
// which must be shipped and knows no names. A text's neighbours count: an answer need not repeat the question's words.
// Indexing windows of messages found less.
package rank
