package main

import "syscall"

// endWithDemo has the kernel stop a gateway when the demo is killed.
func endWithDemo(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
