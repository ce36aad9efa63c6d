// Package dates is the grammar of dates in Chinese and English: it finds them in a text and computes the days that they
// mean, relative to the day on which the text was said.
package dates
