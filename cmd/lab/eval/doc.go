// Package eval searches data with known answers through the bot's search and writes the results: `lab eval`.
package eval
