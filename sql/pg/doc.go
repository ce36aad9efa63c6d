// Package pg is the base of all stores: one pool of connections, the statements of sqlc, and the kinds of
// transactions.
//
// A store embeds [DB]. [DB.WithLease] and [DB.WithSession] run a transaction that holds one session's row, [DB.InTx]
// one that holds none. [AsRefused], [Unavailable] and [AsNotFound] classify errors of the server.
package pg
