package bot

import (
	"context"
	"errors"
)

// ErrStop is the cause with which work is cancelled when the process stops: it is no failure of the work.
var ErrStop = errors.New("bot is stopping")

// apology is what people are told of an error that ended their turn. It depends on the error's class alone: the
// provider's own text may hold keys and addresses.
func apology(err error, lang string) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return say(sayTimeout, lang)
	}
	switch ClassOf(err) {
	case Denied:
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
