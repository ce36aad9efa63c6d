package compaction

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"ebb/compaction/tokens"
	"ebb/sessions"
)

const (
	pruneOver   = 4000 // characters; a longer recent result keeps its two ends
	pruneEnd    = 1500 // characters of each end
	pruneRecent = 3    // newest turns, whose results are not cleared
	pruneGain   = 200  // tokens; less does not pay for an uncached prefix
)

// Prune lists the tool results that the view shortens from now on: long ones to their two ends, those before the last
// three turns to a note. A view never changes a result twice. Modes without pruning return nothing.
func (p Policy) Prune(tail []sessions.Event, count func(string) int) []sessions.Shown {
	if p.Mode != SummaryPlusPrune && p.Mode != PruneOnly {
		return nil
	}
	recent := 0
	if starts := TurnStarts(tail); len(starts) > pruneRecent {
		recent = starts[len(starts)-pruneRecent]
	}
	var out []sessions.Shown
	for i, e := range tail {
		if e.Role != sessions.RoleTool || e.Blob != "" || e.Tokens < pruneGain || isPruned(e) {
			continue
		}
		text := pruneNote(e)
		if i >= recent {
			text = prunedEnds(e)
		}
		if tokens := count(text); tokens+pruneGain <= e.Tokens {
			out = append(out, sessions.Shown{Seq: e.Seq, Text: text, Tokens: tokens})
		}
	}
	return out
}

// No author of a result could know the event's number.
func pruneMark(e sessions.Event) string { return fmt.Sprintf("[Event %d: ", e.Seq) }

// isPruned relies on the bound of shortened results.
func isPruned(e sessions.Event) bool {
	return strings.HasPrefix(e.Content, pruneMark(e)) && utf8.RuneCountInString(e.Content) <= pruneOver
}

func pruneNote(e sessions.Event) string {
	return fmt.Sprintf("%sresult of %s, %d characters, shortened to save room. Do not repeat the same call unchanged: "+
		"%s reads the whole.]", pruneMark(e), oneLine(e.ToolName), utf8.RuneCountInString(e.Content), sessions.ReadCall(e.Seq))
}

func prunedEnds(e sessions.Event) string {
	rs := []rune(e.Content)
	if len(rs) <= pruneOver {
		return e.Content
	}
	return pruneNote(e) + "\n" + string(rs[:pruneEnd]) + "\n…\n" + string(rs[len(rs)-pruneEnd:])
}

func oneLine(name string) string {
	return tokens.HeadTail(strings.Join(strings.Fields(name), " "), maxToolName)
}

const maxToolName = 64

// readsResults prevents a loop: the tool's pages are offloaded results. query_history's lists are offloaded, since
// memory_get reads them in pages.
func readsResults(tool string) bool { return tool == sessions.GetTool }

// leastOffload is the maximum of a reference in tokens: offloading less gains nothing.
const leastOffload = 400

const previewBytes = 240

func (p Policy) offloadsAt(w Window, s State) bool {
	return p.Mode == OffloadThenCompact && p.OffloadOver > 0 && float64(s.Tokens) >= p.OffloadAt*float64(w.Trigger())
}

func (p Policy) largeResults(tail []sessions.Event) []sessions.Event {
	var out []sessions.Event
	for _, e := range tail {
		if e.Role == sessions.RoleTool && e.Tokens > max(p.OffloadOver, leastOffload) && e.Blob == "" && !readsResults(e.ToolName) && !isPruned(e) {
			out = append(out, e)
		}
	}
	return out
}

// Offload lists the results that leave the view, with their references, and the freed tokens. The events need their
// whole bodies. A result is never interpreted: only the store assigns addresses.
func (p Policy) Offload(w Window, s State, count func(string) int) (shown []sessions.Shown, freed int) {
	if !p.offloadsAt(w, s) {
		return nil, 0
	}
	for _, e := range p.largeResults(s.Tail) {
		text := referenceText(e)
		if tokens := count(text); tokens < e.Tokens {
			shown = append(shown, sessions.Shown{Seq: e.Seq, Text: text, Tokens: tokens, Blob: sessions.BlobOf(e.Content)})
			freed += e.Tokens - tokens
		}
	}
	return shown, freed
}

// Reference replaces an offloaded result. ok is false for short results and those of memory_get.
func Reference(e sessions.Event) (text string, ok bool) {
	if e.Role != sessions.RoleTool || readsResults(e.ToolName) {
		return "", false
	}
	text = referenceText(e)
	return text, len(text) < len(e.Content)
}

func referenceText(e sessions.Event) string {
	blob := sessions.BlobOf(e.Content)
	return fmt.Sprintf("Tool result is at: %s\n%s, %d bytes, moved out to save room; %s reads the whole. It begins and ends:\n%s",
		sessions.BlobPath(blob), oneLine(e.ToolName), len(e.Content), sessions.BlobCall(blob), tokens.HeadTail(e.Content, previewBytes))
}

// StillDue reports whether a summary is due after offloading, which freed too little for the next turns.
func (p Policy) StillDue(w Window, tokensAfter, freed int) bool {
	return tokensAfter >= w.Trigger() && freed < p.OffloadEnough
}
