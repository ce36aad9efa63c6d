// Package serial runs the work of each session one piece at a time and coalesces wake-ups.
package serial
