//go:build !linux

package localpg

import "syscall"

func endWithParent(*syscall.SysProcAttr) {}
