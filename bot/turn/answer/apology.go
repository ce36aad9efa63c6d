package answer

import (
	"context"
	"errors"

	"ebb/bot/wording"
	"ebb/sessions/llm"
)

// The provider's own text may hold keys and addresses, so only the error's class counts.
func apology(err error, lang string) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return wording.Say(wording.Timeout, lang)
	}
	switch llm.ClassOf(err) {
	case llm.Timeout:
		return wording.Say(wording.Timeout, lang)
	case llm.Broken:
		return wording.Say(wording.Broken, lang)
	case llm.Unreachable:
		return wording.Say(wording.Unreachable, lang)
	case llm.Denied, llm.Unpaid, llm.Missing:
		return wording.Say(wording.Denied, lang)
	case llm.Refused:
		return wording.Say(wording.Refused, lang)
	case llm.Malformed:
		return wording.Say(wording.Malformed, lang)
	case llm.Overflow:
		return wording.Say(wording.Overflow, lang)
	}
	return wording.Say(wording.Busy, lang)
}
