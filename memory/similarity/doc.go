// Package similarity decides whether a text repeats another one, with other words around it or nearly. Forgetting depends
// on it: a fact is deleted with the messages and replies that repeat it.
//
//	set.go    [Set], [SameStatement], [Retells], [Share]: by trigrams, and by numbers, which must agree
//	marks.go  [MarksOf], [Distinctive]: identifiers and phrases, long enough not to coincide by accident
package similarity
