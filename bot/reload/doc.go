// Package reload holds the settings that a running bot takes from a newer configuration file. They are one value, which
// is replaced as a whole. A turn in progress keeps the value that it began with.
package reload
