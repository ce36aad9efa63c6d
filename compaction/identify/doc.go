// Package identify finds the identifiers of a text, such as numbers, dates, amounts, addresses and paths. Spellings of
// one value have one key.
package identify
