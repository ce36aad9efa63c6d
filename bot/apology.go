package bot

import (
	"context"
	"errors"
)

// apology is what people are told of an error that ended their turn. It depends on the error's class alone: the
// provider's own text may hold keys and addresses.
func apology(err error, lang string) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return say(sayTimeout, lang)
	}
	switch ClassOf(err) {
	case Timeout:
		return say(sayTimeout, lang)
	case Broken:
		return say(sayBroken, lang)
	case Unreachable:
		return say(sayUnreachable, lang)
	case Denied, Missing:
		return say(sayDenied, lang)
	case Refused:
		return say(sayRefused, lang)
	case Malformed:
		return say(sayMalformed, lang)
	case Overflow:
		return say(sayOverflow, lang)
	}
	return say(sayBusy, lang)
}
