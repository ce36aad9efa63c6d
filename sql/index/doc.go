// Package index computes the hashed terms by which a search finds rows, and adds them to rows that lack them.
package index
