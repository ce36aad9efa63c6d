// Package dingtalk is the [chat.Transport] for DingTalk: it takes messages from the stream gateway and sends replies.
//
// # In
//
//	open + ticket ──▶ connection ──▶ frame ──▶ decode ──▶ accept (one commit) ──▶ ack 200
//	      ▲               │
//	      └── supervise ──┘  lost: replaced at once; asked to leave: the next one opens first
//
// A frame is acknowledged with 200 only after accept returned nil. Everything else is acknowledged with 500 and a
// neutral text: storage that failed or was too slow, and frames that could never be stored. DingTalk uses such acks for
// diagnosis; a 200 would be false.
//
// Decoding is lenient, since DingTalk's own samples deviate from the documented types. Only a missing message or
// conversation id makes a message unreadable.
//
// # Out
//
// A reply goes to the session webhook of the message that it answers. When that has expired or is unknown, it goes
// through the open API in the same call. Only a refused token is retried here: the outbox retries the rest, by the
// class in [chat.SendError].
//
// # Decisions
//
// The official SDK opens connections and knows the wire format. It would handle each frame in a goroutine of its own:
// messages that were sent back to back changed places. So one goroutine reads and decodes the frames here, and the
// order of reading breaks the tie between messages of one millisecond. Messages are stored and acknowledged
// concurrently.
//
// A reply has the same parts in whichever way it is sent, with room for mentions in each. A send that failed in the
// middle goes on with the missing part.
//
// A frame without headers is passed over: it holds no id to acknowledge.
//
// # Parts
//
// Transport composes them, and no part knows it: stream takes messages in, frame decodes them, openapi makes counted calls, request
// makes one and judges its answer. The files here are values over these: sender for replies, by webhooks and direct; the calls
// of cards, of marks and of files.
package dingtalk
