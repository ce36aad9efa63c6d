// Package pg is the base of all stores: the pool of connections, the statements of sqlc, and the kinds of transactions.
package pg
