// Package view decides what a request shows, measures it and assembles it. It asks no model.
//
// A Builder has parts, each with the few things that it needs. Choices are the settings and models of conversations, and Words separates
// people's own words from quotes and commands. Frames are the constant parts of requests, and Sizes count their tokens. Memory shows
// facts and hits, and a Quoter finds the messages that people reply to. The builder's own methods prepare and trim a view.
package view
