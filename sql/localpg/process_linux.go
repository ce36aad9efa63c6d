package localpg

import "syscall"

// endWithParent has the kernel shut the server down when Ebb is killed. Elsewhere the next start does that.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
