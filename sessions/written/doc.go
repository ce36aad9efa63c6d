// Package written judges the words of a model. It takes out all that is no answer, and finds replies in place of summaries.
//
// A Filter looks at the beginning of the text that it has not passed on. Values that each know one kind of mistake decide on it:
// calls, names (before an answer and before a later line) and turns of a template. They return a decision, and the Filter alone
// applies it. The output finds repetitions in the words that are left.
package written
