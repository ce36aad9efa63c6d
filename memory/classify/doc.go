// Package classify judges a text by its words alone. Its rules are in rules.tsv, each with a text that it must match
// and one that it must not.
package classify
