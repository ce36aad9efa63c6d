package compaction

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"ebb/compaction/tokens"
	"ebb/sessions"
)

// How tool results of a tail are shortened, in characters, turns and tokens.
const (
	pruneOver   = 4000 // a recent result that is longer keeps its ends
	pruneEnd    = 1500 // each of them
	pruneRecent = 3    // turns whose results are not cleared
	pruneGain   = 200  // what is gained by less is not worth a prefix that no cache knows
)

// Prune says which tool results of a tail the view shows shortened from now on: long ones by their two ends, and those
// before the last three turns by a note. count counts tokens. A result that was shortened or moved out before stays as it
// is, so that what the view shows of it never changes again. Modes that don't prune give nothing.
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
		if e.Role != sessions.RoleTool || e.Blob != "" || e.Tokens < pruneGain || pruned(e) {
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

// pruneMark begins every shortened result. It has the event's number, which nobody could know who wrote the result.
func pruneMark(e sessions.Event) string { return fmt.Sprintf("[Event %d: ", e.Seq) }

// pruned reports whether a result is shown shortened. No shortened one is longer than this.
func pruned(e sessions.Event) bool {
	return strings.HasPrefix(e.Content, pruneMark(e)) && utf8.RuneCountInString(e.Content) <= pruneOver
}

// pruneNote stands for a whole result.
func pruneNote(e sessions.Event) string {
	return fmt.Sprintf("%sresult of %s, %d characters, shortened to save room. Do not repeat the same call unchanged: "+
		"%s reads the whole.]", pruneMark(e), oneLine(e.ToolName), utf8.RuneCountInString(e.Content), sessions.ReadCall(e.Seq))
}

// prunedEnds is a long result by its note and its two ends; a short one whole.
func prunedEnds(e sessions.Event) string {
	rs := []rune(e.Content)
	if len(rs) <= pruneOver {
		return e.Content
	}
	return pruneNote(e) + "\n" + string(rs[:pruneEnd]) + "\n…\n" + string(rs[len(rs)-pruneEnd:])
}

// oneLine is a tool's name as far as it is fit for a note.
func oneLine(name string) string {
	return tokens.HeadTail(strings.Join(strings.Fields(name), " "), maxToolName)
}

const maxToolName = 64

// reads reports whether a tool reads results that were moved out: moving its pages out would make it read for ever. Other
// results move out, a list of query_history too: memory_get reads them in pages, which stay.
func reads(tool string) bool { return tool == sessions.GetTool }

// leastOffload is what a reference takes at the most, in tokens: moving out as little gains nothing.
const leastOffload = 400

// previewBytes is how much of a result that was moved out its reference shows.
const previewBytes = 240

// offloading reports whether results are to be moved out of a context of that size.
func (p Policy) offloading(w Window, s State) bool {
	return p.Mode == OffloadThenCompact && p.OffloadOver > 0 && float64(s.Tokens) >= p.OffloadAt*float64(w.Trigger())
}

// large lists the tool results that may be moved out.
func (p Policy) large(tail []sessions.Event) []sessions.Event {
	var out []sessions.Event
	for _, e := range tail {
		if e.Role == sessions.RoleTool && e.Tokens > max(p.OffloadOver, leastOffload) && e.Blob == "" && !reads(e.ToolName) && !pruned(e) {
			out = append(out, e)
		}
	}
	return out
}

// Offload says which tool results of the tail move out of the view, how the view refers to them, and how many tokens
// that frees. The events must have their whole bodies, as the log has them; count counts tokens. What a result says of
// itself is not looked at: only what the store moved out has an address.
func (p Policy) Offload(w Window, s State, count func(string) int) (shown []sessions.Shown, freed int) {
	if !p.offloading(w, s) {
		return nil, 0
	}
	for _, e := range p.large(s.Tail) {
		text := offloaded(e)
		if tokens := count(text); tokens < e.Tokens {
			shown = append(shown, sessions.Shown{Seq: e.Seq, Text: text, Tokens: tokens, Blob: sessions.BlobOf(e.Content)})
			freed += e.Tokens - tokens
		}
	}
	return shown, freed
}

// Reference is what a view shows in the place of a result that was moved out, and whether that is worth it: results that
// read others back stay, and so do short ones.
func Reference(e sessions.Event) (text string, ok bool) {
	if e.Role != sessions.RoleTool || reads(e.ToolName) {
		return "", false
	}
	text = offloaded(e)
	return text, len(text) < len(e.Content)
}

// offloaded is what the view shows in the place of a result that was moved out.
func offloaded(e sessions.Event) string {
	blob := sessions.BlobOf(e.Content)
	return fmt.Sprintf("Tool result is at: %s\n%s, %d bytes, moved out to save room; %s reads the whole. It begins and ends:\n%s",
		sessions.BlobPath(blob), oneLine(e.ToolName), len(e.Content), sessions.BlobCall(blob), tokens.HeadTail(e.Content, previewBytes))
}

// StillDue reports whether a summary has to be made although results were moved out, which freed so many tokens: where
// the context still is as large as the trigger, unless so much came free that the next turns will do.
func (p Policy) StillDue(w Window, tokensAfter, freed int) bool {
	return tokensAfter >= w.Trigger() && freed < p.OffloadEnough
}
