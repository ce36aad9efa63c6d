// Package extract reads a range of the log with a model and saves the facts in it: a flush. Each part of the range
// commits on its own, so that a failed flush keeps the parts before the failure.
package extract
