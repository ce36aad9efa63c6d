package mcp

import "syscall"

// endWithParent lets the kernel kill a child process when the thread that started it ends, as by a SIGKILL of the bot. [connection.connect] keeps
// the thread while the child lives. A child of the child, such as that of npx, reads the end of its input instead.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
