//go:build !linux

package mcp

import "syscall"

// endWithParent does nothing: other systems have no such signal. A child process reads the end of its input when the bot was killed.
func endWithParent(*syscall.SysProcAttr) {}
