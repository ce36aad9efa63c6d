// Package upkeep does the work after the reply: it flushes facts into memory, compacts contexts, repeats owed flushes,
// writes digests and tidies the memory. Failures are logged and retried later; they never reach a group.
package upkeep
