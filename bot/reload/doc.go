// Package reload holds the settings that a running bot takes from a newer configuration file.
package reload
