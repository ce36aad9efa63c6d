//go:build race

package labtest

// raceEnabled reports whether the race detector is on.
const raceEnabled = true
