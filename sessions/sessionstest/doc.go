// Package sessionstest is the suite that the stores of each storage must pass. CheckGrowth tests that work on a text grows
// no faster than the text.
package sessionstest
