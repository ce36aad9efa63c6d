// Package dingtalktest is to DingTalk what httptest is to HTTP: a server on the loopback interface that behaves like the
// open platform as far as a group bot meets it, misbehaves on command, and keeps a record of what the bot did wrong.
//
//	s := dingtalktest.NewServer(t, dingtalktest.Fast())     // in a test; New(opts) and Close in a program
//	// point api_base and oapi_base of the gateway at s.URL, client id dingsimapp0001, secret sim-secret
//	_ = s.WaitConns(ctx, 1)
//	id := s.Say(dingtalktest.Message{Conversation: "cidRelease", Sender: "u1", Text: "deploy status"})
//	ack, err := s.WaitAck(ctx, id)
//	reply, err := s.WaitReply(ctx, "cidRelease", "all green")
//	s.Redeliver(id, dingtalktest.RedeliverOptions{Times: 5})
//	s.Disconnect(dingtalktest.DisconnectOptions{})
//	s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteWebhook, Action: dingtalktest.Do("rate-limited"), Count: 3})
//	violations := s.Violations()
//
// # Where things are
//
//	options.go      the knobs, with the defaults and which of them are guesses
//	gateway.go      connections/open, tickets, the handshake, pings
//	conn.go         one stream connection: its writer, its reader, its end
//	push.go         messages on their way: Say, routing, redelivery
//	ack.go          the client's answers, and what can be wrong with them
//	message.go      payloads of every kind, quotes, and Variants, which has one of each
//	streamfaults.go redelivery, disconnect, drops, half-open and zombie connections, bursts, malformed frames
//	routes.go       the HTTP routes and how a fault takes the place of an answer; faults.go: rules and the catalogue
//	webhook.go, openapi.go, media.go, cards.go  the sending side
//	report.go       transcript and violations; wait.go: waits, replies, state
//
// # What is faithful
//
// The shapes of requests, frames and answers; single-use tickets that end after 90 s; a random choice among the live
// connections that subscribed; `disconnect` with 10 s of silence before the socket ends; session webhooks that end after
// 90 min; business errors inside a 200; the size and rate limits and their codes; tokens that stay the same while they are
// valid; cards as a state machine. The official Go SDK is a client in this package's tests, the official Node SDK in
// the conformance folder's program.
//
// # What cannot be faithful
//
// DingTalk documents little of what happens when something goes wrong, and no real one was asked. These are knobs with a
// default taken from what people report, and a test must not lean on them: whether, when, how often and to which
// connection a message is pushed again; how often pings and KEEPALIVE frames come and how long a connection lives; whether
// messages wait while nobody is connected; any order between messages; the exact bodies of refusals to open and the
// status of a refused handshake; whether the 20 replies a minute hold for session webhooks, and counted per what; whether
// msgUuid makes a webhook reply idempotent; how long download codes live; what the monthly quotas count. Nothing here
// renders markdown or cards as a client does, moderates content, or knows what a streaming call after the last one does
// (it is reported, and changes nothing).
//
// # What is reported
//
// The real platform does not tell a bot that it acknowledged the wrong frame, answered twice or left a card spinning.
// Violations does, see the constants from AckUnknown on. Two are judgements: ReplyTwice means the same words for the same
// message, or, when one of the two went by the open API, the same words with nobody having spoken in between; TokenWasted
// means a token was fetched while the last was far from its end, was never refused, and no connection had been opened
// for it, which might have been a new process's.
//
// # Decisions
//
// One mutex guards all state, and one channel that is replaced at every change serves all waits: a simulator needs no
// more, and it cannot deadlock. Timers keep to real time; Advance moves only the clock that expiries and rates are
// measured by. Message and frame ids are random beyond the seed, since a gateway's database outlives a simulator and would
// take a repeated id for a redelivery. A webhook belongs to one message, so that a reply tells which message it answers.
package dingtalktest
