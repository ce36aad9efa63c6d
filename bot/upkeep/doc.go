// Package upkeep does the work after the reply: it flushes facts into memory, compacts contexts, repeats owed flushes,
// writes digests and tidies the memory.
//
// [Worker.Maintain] is one session's upkeep after its reply. [Worker.Compact] is the only way to shrink a context, and
// includes the flush. Failures are logged and retried later; they never reach a group.
package upkeep
