// Package sessions holds the vocabulary of Ebb: session keys, messages, events, turns and leases, and the storage ports. It
// imports no other package of Ebb.
//
// # The log
//
// A session is an append-only log of events. An inbound message is one event, pending until the turn that answers it
// commits. The log has two orders. ID is the order of arrival. Seq, given at the commit, is the order of the view: a
// question that arrived during a turn stands after that turn's answer. A turn takes messages in the order in which they
// were sent, by DingTalk's clock, then in the order of arrival.
// # The lease
//
//	         Acquire                 Commit, Compact, ... (term must match)
//	free ─────────────▶ held by A ──────────────────────────────┐
//	 ▲                   │  │  ▲                                │
//	 │ Resign (clean)    │  │  └────────────────────────────────┘
//	 └───────────────────┘  │ A's heartbeat older than the time to live
//	                        ▼
//	                      stale ──Acquire by B──▶ held by B, term+1   (A's writes now fail: ErrLeaseLost)
//
// One heartbeat per replica, not per session, keeps all its leases. Only the database's clock counts, so that
// replicas with different clocks do not conflict.
//
// # Decisions
//
// A lost wake-up is no lost message: the sweep over [Inbox.Waiting] finds it. Summaries have no Seq of their own; their
// place is their range.
package sessions
