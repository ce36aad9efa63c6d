// Package classify judges a text by its words alone, without a model and without storage. It finds junk, instructions
// that pose as facts, personal data, credentials, texts worth a flush, and questions about earlier talk. Its rules are
// in rules.tsv, each with a text that it must match and one that it must not.
package classify
