// Package upkeep does the work that no answer waits for: it flushes facts into memory, compacts contexts, settles owed
// flushes, writes digests and tidies up.
//
// [Worker.Maintain] is one session's upkeep after its reply. [Worker.Compact] is the only way to a smaller context, and
// contains the flush. Failures are logged and tried again later; they never reach a group.
package upkeep
