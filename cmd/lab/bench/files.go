package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/media/document/documenttest"
	"ebb/cmd/lab/rig"
)

const (
	filesAtOnce = 20
	fileBytes   = 50_000_000
	filePages   = 300
	fileLimit   = 150 << 20
	fileTick    = 20 * time.Millisecond
	fileWait    = 5 * time.Minute
)

// measureFiles sends PDF files of 50 MB to as many conversations at once, each with a question. The child processes that parse them are named
// apart: they end with their file.
func (b *suite) measureFiles(ctx context.Context) (figures []rig.Figure, err error) {
	r, ctx := b.openFixture(ctx)
	defer func() { err = rig.JoinStopError(err, r.close(ctx)) }()
	g, err := r.startOne(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.AskOnce(ctx, 0, filesAtOnce); err != nil { // as many connections as it will have
		return nil, err
	}
	pages := make([]string, filePages)
	for i := range pages {
		pages[i] = strings.Repeat(fmt.Sprintf("第%d页设备维护的步骤，按顺序检查各项指标。", i+1), 40)
	}
	code := r.dingtalk.AddFile("手册.pdf", "application/pdf", documenttest.LargePDF(fileBytes, pages...))
	before, err := g.readUsage(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	asked := make([]*rig.Question, filesAtOnce)
	for i := range asked {
		asked[i] = r.AskAbout(rig.ConversationName(i), "第200页写了什么", dingtalktest.QuoteMedia("file", fmt.Sprintf("files-%d", i), code, "手册.pdf"))
	}
	peak := make(chan filesUsage, 1)
	done := make(chan struct{})
	go func() { peak <- watchFiles(g.PID(), done) }()
	for _, q := range asked {
		err = errors.Join(err, q.WaitWithin(ctx, fileWait))
	}
	took := time.Since(began)
	close(done)
	most := <-peak
	if err != nil {
		return nil, err
	}
	if n := len(r.book.Lines("Attachment read")); n != filesAtOnce {
		return nil, fmt.Errorf("%d of %d files were read; others: %v", n, filesAtOnce, r.book.Lines("Attachment could not be read"))
	}
	more := float64(most.gateway) - before.resident
	return []rig.Figure{
		rig.Figure{
			Name: fmt.Sprintf("RSS more, %d PDFs of %d MB at once", filesAtOnce, fileBytes/1_000_000), Measured: fmt.Sprintf("%.0f MB", more/(1<<20)),
			Ratio:  fmt.Sprintf("%.0f MB before; children apart: %d at once, %d MB together", before.resident/(1<<20), most.children, most.theirs>>20),
			Target: fmt.Sprintf("<= %d MB", fileLimit>>20),
		}.AtMost(more, fileLimit),
		{Name: fmt.Sprintf("%d such files read and answered", filesAtOnce), Measured: fmt.Sprintf("%.1f s", took.Seconds())},
	}, nil
}

// filesUsage has the largest values of a watch, in bytes.
type filesUsage struct {
	gateway, theirs int64
	children        int
}

// watchFiles reads the resident memory of a process and of its children.
func watchFiles(pid int, done <-chan struct{}) (most filesUsage) {
	tick := time.NewTicker(fileTick)
	defer tick.Stop()
	for {
		most.gateway = max(most.gateway, residentOf(pid))
		children, theirs := childrenOf(pid), int64(0)
		for _, child := range children {
			theirs += residentOf(child)
		}
		most.children, most.theirs = max(most.children, len(children)), max(most.theirs, theirs)
		select {
		case <-done:
			return most
		case <-tick.C:
		}
	}
}

// residentOf is 0 for a process that has ended, and on systems without /proc.
func residentOf(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel writes numbers
		return pages * int64(os.Getpagesize())
	}
	return 0
}

func childrenOf(pid int) (children []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is sound
	for _, path := range tasks {
		text, _ := os.ReadFile(path) // a thread that has ended has none
		for _, field := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(field); err == nil {
				children = append(children, n)
			}
		}
	}
	return children
}
