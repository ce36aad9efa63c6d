// Package retry repeats failed work after growing pauses.
package retry
