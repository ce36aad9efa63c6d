// Package identify finds identifiers: numbers, dates, amounts, addresses, paths and the like. Spellings of one value
// have one key.
package identify
