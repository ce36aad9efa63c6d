package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ebb/cmd/lab/rig"
	"ebb/compaction/tokens"
	"ebb/compaction/tokens/tokenstest"
)

const (
	tokensRounds  = 8
	unbrokenBytes = 64 << 10
)

func (b *suite) measureTokens(ctx context.Context) ([]rig.Figure, error) {
	counter, err := tokens.NewCounter()
	if err != nil {
		return nil, err
	}
	library, err := tokenstest.NewPlain()
	if err != nil {
		return nil, err
	}
	var prose strings.Builder
	for prose.Len() < 192<<10 {
		for _, u := range append(append([]rig.Utterance{}, rig.LongMessages...), rig.ShortMessages...) {
			prose.WriteString(u.Text + "\n\n")
		}
	}
	text := prose.String()
	if ours, plain := counter.Count(text), library.Count(text); ours != plain {
		return nil, fmt.Errorf("our count of prose is %d tokens, the library's is %d", ours, plain)
	}
	var ours, plain []time.Duration
	for range tokensRounds {
		ours = append(ours, timeCall(func() { counter.Count(text) }))
		plain = append(plain, timeCall(func() { library.Count(text) }))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	ratio := rig.Ratio(float64(rig.Median(plain)), float64(rig.Median(ours)))
	worst, name := time.Duration(0), ""
	for _, run := range []string{"a", "7", "中", "=", " ", "é", "ab", "测试"} {
		unbroken := strings.Repeat(run, unbrokenBytes/len(run))
		var took []time.Duration
		for range 3 {
			took = append(took, timeCall(func() { counter.Count(unbroken) }))
		}
		if m := rig.Median(took); m > worst {
			worst, name = m, run
		}
	}
	return []rig.Figure{
		rig.Figure{
			Name: "token counting, prose", Measured: fmt.Sprintf("%.1f MB/s", float64(len(text))/1e6/rig.Median(ours).Seconds()),
			Ratio: fmt.Sprintf("%.2f x tiktoken-go itself", ratio), Target: ">= 0.9 x",
		}.AtLeast(ratio, 0.9),
		rig.Figure{
			Name: "token counting, 64 KB unbroken", Measured: fmt.Sprintf("%s (the worst: %+q)", rig.FormatMillis(worst), name), Target: "<= 50 ms",
		}.AtMost(float64(worst), float64(50*time.Millisecond)),
	}, nil
}

func timeCall(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
