// Package similarity decides whether a text repeats another one, with other words around it or nearly: by trigrams
// with equal numbers, and by identifiers and phrases. Forgetting a fact depends on it, to find the messages and
// replies that repeat the fact.
package similarity
