// Package limits counts turns, tokens and notices in windows of time, for all replicas.
package limits
