package compaction

// TestCounter is the counter of the tests, for those outside the package.
var TestCounter = counter
