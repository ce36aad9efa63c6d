// Package search finds events and memories by words, by meaning, and by place in the log.
package search
