package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"ebb/cmd/lab/rig"
	"ebb/compaction/tokens"
	"ebb/compaction/tokens/tokenstest"
)

const (
	tokensRounds  = 15
	unbrokenBytes = 64 << 10
)

func (b *suite) measureTokens(ctx context.Context) ([]rig.Figure, error) {
	library, err := tokenstest.NewPlain()
	if err != nil {
		return nil, err
	}
	var chinese, english strings.Builder
	for _, u := range append(append([]rig.Utterance{}, rig.LongMessages...), rig.ShortMessages...) {
		if u.Speaker == rig.Alex {
			english.WriteString(u.Text + "\n\n")
		} else {
			chinese.WriteString(u.Text + "\n\n")
		}
	}
	zh, err := measureProse(ctx, "Chinese", chinese.String(), library)
	if err != nil {
		return nil, err
	}
	en, err := measureProse(ctx, "English", english.String(), library)
	if err != nil {
		return nil, err
	}
	unbroken, err := measureUnbroken()
	return []rig.Figure{zh, en, unbroken}, err
}

// measureProse counts a text with an empty cache and again with a full one, beside the library alone.
func measureProse(ctx context.Context, name, text string, library *tokenstest.Plain) (rig.Figure, error) {
	var first, again, plain []time.Duration
	for range tokensRounds {
		counter, err := tokens.NewCounter()
		if err != nil {
			return rig.Figure{}, err
		}
		ours, theirs := 0, 0
		first = append(first, timeCall(func() { ours = counter.Count(text) }))
		again = append(again, timeCall(func() { counter.Count(text) }))
		plain = append(plain, timeCall(func() { theirs = library.Count(text) }))
		if diff := ours - theirs; max(diff, -diff) > theirs/200 { // a cut in a run without a boundary may add or remove a few
			return rig.Figure{}, fmt.Errorf("our count of prose is %d tokens, the library's is %d", ours, theirs)
		}
		if ctx.Err() != nil {
			return rig.Figure{}, context.Cause(ctx)
		}
	}
	speed := func(took []time.Duration) float64 { return float64(len(text)) / 1e6 / rig.Median(took).Seconds() }
	ratio := rig.Ratio(speed(first), speed(plain))
	return rig.Figure{
		Name: "token counting, " + name + " prose", Measured: fmt.Sprintf("%.1f MB/s, again %.0f", speed(first), speed(again)),
		Ratio: fmt.Sprintf("%.2f x tiktoken-go alone, %.1f MB/s", ratio, speed(plain)), Target: ">= 0.9 x",
	}.AtLeast(ratio, 0.9), nil
}

// measureUnbroken counts 64 KB without a blank, each kind with an empty cache, in processor time.
func measureUnbroken() (rig.Figure, error) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same texts in each run
	worst, name := time.Duration(0), ""
	for _, kind := range []struct {
		name        string
		first, last rune
	}{
		{"one letter", 'a', 'a'}, {"one digit", '7', '7'}, {"one sign", '=', '='}, {"spaces", ' ', ' '}, {"newlines", '\n', '\n'},
		{"one character", '中', '中'}, {"small letters", 'a', 'z'}, {"capitals", 'A', 'Z'}, {"digits", '0', '9'}, {"base64", '+', 'z'},
		{"Chinese", 0x4e00, 0x9fff}, {"emoji", 0x1f300, 0x1f5ff},
	} {
		var text strings.Builder
		for text.Len() < unbrokenBytes {
			text.WriteRune(kind.first + random.Int32N(kind.last-kind.first+1))
		}
		var took []time.Duration
		for range 3 {
			counter, err := tokens.NewCounter()
			if err != nil {
				return rig.Figure{}, err
			}
			before := processorTime()
			counter.Count(text.String())
			took = append(took, processorTime()-before)
		}
		m := rig.Median(took)
		if m > worst {
			worst, name = m, kind.name
		}
	}
	return rig.Figure{
		Name: "token counting, 64 KB unbroken", Measured: fmt.Sprintf("%s (the worst: %s)", rig.FormatMillis(worst), name), Target: "<= 50 ms",
	}.AtMost(float64(worst), float64(50*time.Millisecond)), nil
}

// processorTime is that of the whole process so far.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // it fails only for a bad argument
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func timeCall(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
