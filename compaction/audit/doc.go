// Package audit checks a summary against its source, and repairs it.
package audit
