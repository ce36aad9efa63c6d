// Package retention deletes data that is past its period, on the leader. The storage decides which rows may go; the cleaner
// repeats its batches and counts them.
package retention
