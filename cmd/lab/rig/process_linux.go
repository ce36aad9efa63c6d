package rig

import "syscall"

// endWithParent has the kernel stop a gateway when lab is killed.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
