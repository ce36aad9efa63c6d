// Package view decides what a request shows, measures it and assembles it.
//
// [Builder] resolves a conversation's settings, shortens what would crowd out the rest, pins memory, writes what memory has on
// a question, and fits the whole into the window. It asks no model.
package view
