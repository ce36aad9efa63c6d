// Package dates finds dates in Chinese and English text and computes their days, from expressions in rules.tsv.
package dates
