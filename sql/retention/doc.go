// Package retention deletes rows that are past their retention period, a batch in each transaction.
package retention
