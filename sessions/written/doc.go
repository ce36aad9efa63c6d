// Package written judges the words of a model. It takes out all that is no answer, and finds replies in place of summaries.
package written
