// Package facts stores what memory has: facts, digests, receipts of flushes, and ranges of a log that wait for a flush.
// [Reader] decides which facts a reader may see.
package facts
