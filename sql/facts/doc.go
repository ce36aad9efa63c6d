// Package facts stores facts, digests, receipts of flushes, and owed flushes. [Reader] selects the facts that a reader
// may see.
package facts
