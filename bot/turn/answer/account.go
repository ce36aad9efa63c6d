package answer

import (
	"context"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"ebb/bot/turn/choice"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Accountant counts contexts. Its fields are required.
type Accountant struct {
	Views         *view.Builder
	ReportDoubted func(model string) // counts reports that are no measurements

	warned sync.Map // models whose reports are no measurements
}

// Account returns the answer's turn with the size of the context behind it, in tokens. It uses the provider's report if it can be one, or else
// our own count, calibrated by earlier reports. It counts the answer's events.
func (k *Accountant) Account(ctx context.Context, a Answer) sessions.TurnResult {
	for i := range a.Result.Events {
		if a.Result.Events[i].Tokens == 0 { // others were counted when appended
			a.Result.Events[i].Tokens = k.Views.Sizes.CountEvent(a.Result.Events[i])
		}
	}
	s, last := a.For.View.Session, a.Report.usage
	sum := a.Result
	sum.Calibration = s.CalibrationFactor
	if a.For.Apart() || a.For.Kind == choice.Dead {
		sum.TotalTokens = s.TotalTokens // nothing enters the view
		if a.For.Kind == choice.Dead {
			sum.Appended = k.appended(a, sum.Calibration)
		}
		return sum
	}
	if a.Report.ended {
		last = sessions.Usage{}
	}
	if last.Prompt > 0 && (a.Report.guessed || !tokens.IsMeasured(last.Prompt, a.Report.estimate)) {
		k.ReportDoubted(a.Result.Spent.Model)
		k.warn(ctx, a)
		sum.Calibration, last = max(sum.Calibration, 1), sessions.Usage{} // a server that cuts requests reported less than it should before, too
	}
	if last.Prompt > 0 {
		sum.Calibration = tokens.Calibrate(sum.Calibration, last.Prompt, a.Report.estimate)
	}
	sum.ObservedTokens, sum.Appended = llm.Clamp(last.Prompt), k.appended(a, sum.Calibration)
	if last.Prompt > 0 && !a.Report.partial {
		// The next request has no recalled memory.
		sum.TotalTokens = max(0, sum.ObservedTokens-view.Calibrated(a.Report.recalled, sum.Calibration)) + llm.Clamp(last.Completion) + tokens.MessageOverhead
		return sum
	}
	// Without a report the known total grows by the appended tokens, and is at least our own count.
	sum.TotalTokens = max(k.Views.Sizes.Size(a.For.View, sum.Calibration), s.TotalTokens) + sum.Appended
	return sum
}

// appended is the growth of the view, which shows large bodies shortened.
func (k *Accountant) appended(a Answer, cal float64) int {
	shown := slices.Concat(a.For.Asked, a.Result.Events)
	k.Views.Shrink(a.For.View.Session, shown, 1)
	return view.Calibrated(compaction.TokensOf(shown), cal)
}

// warn names a model once. Our own count replaces its report.
func (k *Accountant) warn(ctx context.Context, a Answer) {
	if _, known := k.warned.LoadOrStore(a.Result.Spent.Model, true); known {
		return
	}
	r := a.Report
	log := zerolog.Ctx(ctx).Warn().Str("model", a.Result.Spent.Model).Int("counted", r.estimate)
	switch {
	case r.guessed:
		log.Msg("Model reports no tokens, or impossible ones: Ebb counts by itself")
	case r.usage.Prompt < r.estimate:
		log.Int("reported", r.usage.Prompt).Msg("Model reports far fewer tokens than were sent: its context may be smaller than context_window, " +
			"so that it loses the beginning of requests (num_ctx of Ollama). Ebb counts by itself")
	default:
		log.Int("reported", r.usage.Prompt).Msg("Model reports far more tokens than were sent: Ebb counts by itself")
	}
}
