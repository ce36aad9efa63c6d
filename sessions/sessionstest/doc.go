// Package sessionstest is the suite that every sessions.Store must pass. CheckGrowth checks that work on a text grows no
// faster than the text.
package sessionstest
