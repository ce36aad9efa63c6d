// Package dingtalk is the [bot.Transport] for DingTalk: it takes messages from the stream gateway and sends replies.
//
// # In
//
//	open + ticket ──▶ connection ──▶ frame ──▶ decode ──▶ accept (one commit) ──▶ ack 200
//	      ▲               │
//	      └── supervise ──┘  lost: replaced at once; told to leave: the next one opens first
//
// A frame is acknowledged with 200 only after accept returned nil. Everything else is acknowledged with 500 and a
// neutral text: storage that failed or was too slow, and frames that hold nothing that could ever be stored. DingTalk
// uses such acks for diagnosis; a 200 would claim what is not true.
//
// Decoding is lenient. DingTalk documents types that its own samples do not keep to, so that every field is read
// from whatever JSON value came, and only a missing message or conversation id makes a message unreadable.
//
// # Out
//
// A reply goes to the session webhook of the message that it answers. When that has expired or is unknown, it goes
// through the open API in the same call. Nothing is retried here but one refused token: the outbox does that, by the
// class in [bot.SendError].
//
// # Decisions
//
// The official SDK does the wire format and the websocket's keepalive; its reconnecting is switched off, because it
// waits three seconds first and closes the old connection before the new one is there. Each connection is a fresh SDK
// client that this package replaces.
//
// Splitting leaves room for mentions in every part, so that a reply has the same parts whichever way it is sent, and a
// send that failed in the middle goes on with the part that is missing.
//
// The SDK drops frames whose outer JSON is not what it expects (data that is no string, numbers in headers) before
// anything here sees them; DingTalk sends none such.
package dingtalk
