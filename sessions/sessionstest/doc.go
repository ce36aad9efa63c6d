// Package sessionstest is the suite that every sessions.Store must pass. CheckGrowth tests that work on a text grows
// no faster than the text.
package sessionstest
