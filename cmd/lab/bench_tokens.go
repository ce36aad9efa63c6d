package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ebb/compaction/tokens"
	"ebb/compaction/tokens/tokenstest"
)

const (
	tokensRounds  = 8
	unbrokenBytes = 64 << 10
)

// tokens compares our counting with the library's own on prose, turn about, and times what the library is bad at.
func (b *bench) tokens(ctx context.Context) ([]figure, error) {
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
		for _, u := range append(append([]utterance{}, minutes...), remarks...) {
			prose.WriteString(u.text + "\n\n")
		}
	}
	text := prose.String()
	if ours, plain := counter.Count(text), library.Count(text); ours != plain {
		return nil, fmt.Errorf("our count of prose is %d tokens, the library's is %d", ours, plain)
	}
	var ours, plain []time.Duration
	for range tokensRounds {
		ours = append(ours, timed(func() { counter.Count(text) }))
		plain = append(plain, timed(func() { library.Count(text) }))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	ratio := per(float64(median(plain)), float64(median(ours)))
	worst, name := time.Duration(0), ""
	for _, run := range []string{"a", "7", "中", "=", " ", "é", "ab", "测试"} {
		unbroken := strings.Repeat(run, unbrokenBytes/len(run))
		var took []time.Duration
		for range 3 {
			took = append(took, timed(func() { counter.Count(unbroken) }))
		}
		if m := median(took); m > worst {
			worst, name = m, run
		}
	}
	return []figure{
		figure{
			what: "token counting, prose", measured: fmt.Sprintf("%.1f MB/s", float64(len(text))/1e6/median(ours).Seconds()),
			ratio: fmt.Sprintf("%.2f x tiktoken-go itself", ratio), target: ">= 0.9 x",
		}.atLeast(ratio, 0.9),
		figure{
			what: "token counting, 64 KB unbroken", measured: fmt.Sprintf("%s (the worst: %+q)", millis(worst), name), target: "<= 50 ms",
		}.atMost(float64(worst), float64(50*time.Millisecond)),
	}, nil
}

func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
