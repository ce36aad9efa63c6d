// Package extract reads a range of the log with a model and saves the facts in it: a flush.
package extract
