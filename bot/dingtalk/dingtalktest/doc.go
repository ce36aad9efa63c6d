// Package dingtalktest is to DingTalk what httptest is to HTTP: a server on the loopback interface that behaves like the
// open platform towards a group bot. It misbehaves on command and keeps a record of the bot's faults.
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
// A card in a test:
//
//	card, err := s.WaitCard(ctx, "cidRelease", "a finished card", dingtalktest.Card.Done)
//	answer, err := s.Click(ctx, card.TrackID, "u1", "good")
//	s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardStream, Final: true, Action: dingtalktest.Do("card-system-busy")})
//	s.LeaveAPICalls(60)                                      // the rest of the month
//	shown, open, calls := s.Shown("cidRelease"), s.OpenCards(), s.CallsCounted()
//
// # Faithful parts
//
// Requests, frames and answers have DingTalk's shapes, and these rules are its own: Tickets are single-use and end
// after 90 s. A message goes to a random live connection that subscribed. `disconnect` comes 10 s before the socket
// ends. Session webhooks end after 90 min. Business errors come inside a 200. Sizes and rates have their limits and
// codes. A token stays the same while it is valid. Cards are a state machine. DingTalk's Go SDK is a client in this
// package's tests, its Node SDK in the conformance folder's program.
//
// # Guesses
//
// DingTalk documents little of its failures, and no real one was asked. A test must not rely on guesses taken from
// reports: the options marked "unconfirmed", the connections of redeliveries, and the order between messages. The bodies
// of refusals to open, the status of a refused handshake and the codes of refusals of a login are guesses, too. So are
// the life of download codes and the monthly quotas.
//
// Guesses about cards: a streaming call after the last one is refused with param.invalid and reported. A text of more
// than 3,000 Chinese characters shows blank, and one of more than 20,000 bytes is too large. An update of flowStatus
// moves a card as a streaming call does. An update of the streamed variable hides the frames after it, which is
// reported and not played. An answer to a click after 2 s changes nothing, and no callback is pushed again. An empty
// callbackType means no callback. A call counts against the month's budget unless it was refused for rate, budget or
// token. Reactions are the field's.
//
// Nothing here renders Markdown or cards, or moderates content. Only the code fences of a frame are checked.
//
// # Violations
//
// The real platform does not report to a bot that it acknowledged the wrong frame, answered twice or left a card
// spinning. Violations does, see the constants from AckUnknown on. Two are judgements. ReplyTwice means the same
// words for the same message; if one of the two went by the open API, the same words without a message of a person in
// between. TokenWasted means a token fetched while the last was far from its end and never refused, except after a
// new connection, which may be a new process's.
//
// # Decisions
//
// One mutex guards all state, and one channel that is replaced at every change serves all waits, so that the
// simulator can't deadlock. Each part of the platform is a type that embeds the core and the parts that it uses.
// Timers keep to real time; Advance moves only the clock of expiries and rates. Message and frame ids are random
// beyond the seed: a gateway's database outlives a simulator and would take a repeated id for a redelivery. A webhook
// belongs to one message, so that a reply names the message that it answers.
package dingtalktest
