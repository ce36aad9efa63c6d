package localpg

import "syscall"

// The kernel shuts the server down when Ebb is killed. On other systems the next start does that.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
