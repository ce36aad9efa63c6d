// Package index makes the hashed terms that a search finds rows by, and adds them to rows that were stored without them.
package index
