// Package off has the parts of a bot that do nothing, for programs that leave some out: tests, benchmarks and replays. Values that a gateway
// may have stand beside their ports, such as chat.NoTools.
package off

import "errors"

// ErrOff is the error of a part that was asked for something that it can't leave undone.
var ErrOff = errors.New("this part is off")
