// Package off has the parts of a bot that do nothing, for programs that leave some out: tests, benchmarks and replays. Values that a gateway
// may have stand beside their ports, such as chat.NoTools.
package off
