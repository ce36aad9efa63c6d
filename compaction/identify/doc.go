// Package identify finds the identifiers of a text: values that a summary must repeat exactly or not at all, such as numbers,
// dates, amounts, addresses and paths. Spellings of one value have one key.
package identify
