// Package sql keeps sessions and memory in PostgreSQL, or in a compatible engine.
//
// schema.sql holds the tables of a new database, migrations the steps of an older one to them, queries the statements, dbsqlc the
// code that sqlc generates. No query text is in Go. [Store] has a store for each aggregate, over one pool of package pg:
//
//	conversation  messages, leases, turns, replies
//	compactions   compactions, undo, their log
//	spend         costs of model calls
//	facts         facts, digests, flush receipts, flush debts
//	vectors       texts as numbers, for search by meaning
//	index         the search index of logs; terms of facts that were stored without them
//	search        events and facts by words, meaning and place
//	erasure       erasing events, forgetting facts and people, deleting sessions
//	calls         counted calls of DingTalk
//	robots        robots of the installation, and the work that former ones leave
//	limits        counts of turns and tokens by person and group
//	schedules     messages at set times
//	approvals     calls of tools that wait for a person
//	media         pictures and texts of files, files of replies
//	retention     deletion of expired rows
//	admin         lists for administrators
//	console       pages of rows for the console, logins, the audit
//
// identity and convert serve several of these. citus distributes the tables over a cluster. inspect and yardstick are equipment for tests and benchmarks.
//
// # Fencing
//
// Every write of a turn names the lease: owner and term stand in its WHERE clause, on the session's own row, in the
// same transaction. When no row matches, nothing was written and the caller gets sessions.ErrLeaseLost. The row's
// lock orders the write before or after a takeover.
//
// # Round trips
//
// Accepting a message is one statement, committing a turn is one, beginning a turn is two. Each statement is a
// transaction, so each durable step of a turn costs one flush of the server's log.
//
// # Compaction
//
// Compaction never changes the log's bodies. A view is the active summaries and the events after the cursor. An event
// appears as its column shown has it, or otherwise as it was said. A compaction's row of the log has the former view
// for an undo. Blobs are a copy for readers of references, swept with every compaction.
//
// # Erasure
//
// Erased content is wiped in place, so that places, ranges and ids hold. Summaries of erased events keep their place
// and lose the content. An erasure and a deletion lock the session's row but need no lease. An erasure frees the
// lease, and a deletion removes the row, so a worker that read the words before can't write.
//
// # Decisions
//
// No foreign keys on hot tables: they would lock the session's row at each accepted message. Counts of attempts and
// heartbeats do not wait for the disk: they must survive Ebb's death, not the server's. Notifications go out only to
// another replica, for they put all commits of the server into one queue.
//
// Package localpg runs a PostgreSQL of Ebb's own where none is configured.
package sql

//go:generate sqlc generate
