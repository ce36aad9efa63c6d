package yardstick

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

//go:embed work.sql
var yardstickWork string

// Work is what the server has done since its start.
type Work struct {
	CPU        time.Duration // spent by all its processes
	Statements time.Duration // in statements of this database, waits for the disk included; up to a second late
	WAL        int64         // bytes of the write-ahead log
	FullPages  int64         // pages that the log has whole: the first changes after a checkpoint
}

// Since subtracts an earlier reading.
func (w Work) Since(before Work) Work {
	return Work{
		CPU: w.CPU - before.CPU, Statements: w.Statements - before.Statements,
		WAL: w.WAL - before.WAL, FullPages: w.FullPages - before.FullPages,
	}
}

// Work reads the server's figures. The server must run on this machine, which must have a /proc.
func (y *Yardstick) Work(ctx context.Context) (Work, error) {
	var w Work
	var backend int
	var millis float64
	if err := y.pool.QueryRow(ctx, yardstickWork).Scan(&backend, &w.WAL, &w.FullPages, &millis); err != nil {
		return Work{}, fmt.Errorf("asking the server for its work: %w", err)
	}
	w.Statements = time.Duration(millis * float64(time.Millisecond))
	var err error
	w.CPU, err = familyCPU(backend)
	if err != nil {
		return Work{}, fmt.Errorf("reading the server's processor time: %w", err)
	}
	return w, nil
}

// familyCPU sums the time of a process's parent and of all its children, also those that have ended.
func familyCPU(child int) (time.Duration, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	one, err := statOf(fs, child)
	if err != nil {
		return 0, err
	}
	all, err := fs.AllProcs()
	if err != nil {
		return 0, err
	}
	ticks := 0.0
	for _, p := range all {
		s, err := p.Stat()
		if err != nil {
			continue // it has ended
		}
		if s.PID == one.PPID {
			ticks += float64(s.UTime) + float64(s.STime) + float64(s.CUTime) + float64(s.CSTime)
		} else if s.PPID == one.PPID {
			ticks += float64(s.UTime) + float64(s.STime)
		}
	}
	return time.Duration(ticks / ticksPerSecond * float64(time.Second)), nil
}

// ticksPerSecond is the kernel's unit in /proc, the same on all platforms of Linux.
const ticksPerSecond = 100

func statOf(fs procfs.FS, pid int) (procfs.ProcStat, error) {
	p, err := fs.Proc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}
