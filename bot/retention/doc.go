// Package retention deletes data that is past its period, on the leader. The storage decides which rows may go.
package retention
