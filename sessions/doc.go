// Package sessions holds what every part of Ebb speaks of: sessions and their keys, messages, events, turns, leases,
// and the storage that keeps them. It imports nothing else of Ebb.
//
// # The log
//
// A session is an append-only log of events. An inbound message is one event, pending until the turn that answers it
// commits. Two orders run through the log: ID is the order of arrival; Seq, given at the commit, is the order of the
// view, so that a question which arrived during a turn stands after that turn's answer. A turn takes messages in the order
// in which they were sent, by DingTalk's clock, then in the order of arrival.
//
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
// One heartbeat per replica, not per session, keeps all its leases. Time is the database's alone: replicas whose
// clocks disagree do each other no harm.
//
// # Decisions
//
// A lost wake-up is never a lost message: notifications only hurry, the sweep over [Inbox.Waiting] makes sure.
// Summaries have no Seq of their own; their place is the range that they tell.
package sessions
