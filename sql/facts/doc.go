// Package facts stores facts, digests, receipts of flushes, and owed flushes.
package facts
