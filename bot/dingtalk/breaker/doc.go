// Package breaker pauses calls to DingTalk after failures.
//
// A failure belongs to the conversation of the call: a person who left, words that DingTalk refuses, an unknown code. Only a
// failure of the application itself, such as a missing permission, pauses the calls of all conversations.
//
// A call without an answer belongs to its conversation too, until a call of another conversation has no answer either. Then the
// breaker opens for all. After each pause one conversation tries; an answer closes the breaker, silence makes the next pause
// longer.
package breaker
