package openai

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"

	"ebb/sessions/llm"
)

// lessons are what refusals of a model taught. They are safe for concurrent use.
type lessons struct {
	conf      *ModelConfig
	forms     atomic.Pointer[forms]
	answered  atomic.Uint64 // properties whose opposite was in an answered request
	suspected atomic.Uint64 // properties that were changed for a refusal without a known reason
}

// newLessons begins with what the configuration says.
func newLessons(conf *ModelConfig) *lessons {
	ls := &lessons{conf: conf}
	ls.forms.Store(&forms{})
	switch {
	case conf.seesSurely():
		ls.answered.Store(uint64(noPictures))
	case conf.Vision != nil:
		ls.forms.Store(&forms{set: noPictures})
	}
	return ls
}

// current are the forms of the next call.
func (ls *lessons) current() forms { return *ls.forms.Load() }

// lesson says which refusals teach a property. It is learned only from a request that shows the opposite.
type lesson struct {
	property
	refuses func() *regexp.Regexp
}

// taught are tried in this order: the first that applies is the next change.
var taught = []lesson{
	{noPictures, ruleFile.Regexp("formPictures")},
	{wantsThoughts, ruleFile.Regexp("formThoughts")},
	{noStreamOptions, ruleFile.Regexp("formStreamOptions")},
	{noStream, ruleFile.Regexp("formStream")},
	{shortIDs, ruleFile.Regexp("formIDs")},
	{plainSchemas, ruleFile.Regexp("formSchemas")},
	{mergedRoles, ruleFile.Regexp("formAlternate")},
	{noSystem, ruleFile.Regexp("formSystem")},
	{noTools, ruleFile.Regexp("formTools")},
	{emptyText, ruleFile.Regexp("formNull")},
	{textParts, ruleFile.Regexp("formParts")},
	{emptyText, ruleFile.Regexp("formContent")},
	{someText, ruleFile.Regexp("formContent")},
	{lastUser, ruleFile.Regexp("formLast")},
	{mergedRoles, ruleFile.Regexp("formRoles")},
	{noSystem, ruleFile.Regexp("formRoles")},
	{noTools, ruleFile.Regexp("formRoles")},
	{noTools, ruleFile.Regexp("formToolRole")},
	{noSystem, ruleFile.Regexp("formOnlyRoles")},
	{noTools, ruleFile.Regexp("formOnlyRoles")},
}

// suspects are changed together when a request is refused for no known reason, once, as far as no request with them
// was ever answered. The change of any of them costs little.
const suspects = emptyText | mergedRoles | shortIDs | longAnswer | noPictures

// maxChanges bounds the changes of form in a call.
const maxChanges = 8

var (
	refusesField = ruleFile.Regexp("field")
	saysOutput   = ruleFile.Regexp("output")
	saysLeast    = ruleFile.Regexp("least")
	saysRoom     = ruleFile.Each("room")
	namesChoice  = ruleFile.Regexp("formChoice")
)

// nextForms returns the forms of another try after a refusal, and false if the refusal teaches nothing new.
func (ls *lessons) nextForms(f forms, cl call, err *llm.CallError, said *providerError) (forms, bool) {
	if said == nil {
		return f, false
	}
	text := said.joinWords()
	switch {
	case err.Class == llm.Overflow:
		return f.fitWindow(cl, text)
	case err.Class != llm.Malformed && err.Class != llm.Busy && err.Class != llm.Missing || err.Status == 429:
		return f, false
	case cl.way > rungNone && namesChoice().MatchString(text):
		return f, false // the next rung, see force.go
	}
	if to, ok := f.raiseLimit(cl, text, said.message); ok {
		return to, true
	}
	if to, ok := lowerLimit(ls.conf, f, cl, text, said.message); ok {
		return to, true
	}
	if to, ok := f.renameLimit(cl, text); ok {
		return to, true
	}
	for _, l := range taught {
		if cl.shows&l.property != 0 && !f.has(l.property) && l.refuses().MatchString(text) && (l.property != noPictures || !ls.conf.seesSurely()) {
			f.set |= l.property
			return f, true
		}
	}
	if err.Class != llm.Malformed || !err.RequestFault() {
		return f, false
	}
	if to, ok := f.dropField(cl, text); ok {
		return to, true
	}
	if cl.way > rungNone {
		return f, false
	}
	return ls.suspectForm(f, cl)
}

// renameLimit uses the other name of the limit of an answer, or none.
func (f forms) renameLimit(cl call, text string) (forms, bool) {
	if cl.limitField == "" || !strings.Contains(text, cl.limitField) || !refusesField().MatchString(text) {
		return f, false
	}
	if f.has(otherLimit) {
		f.set |= noLimit
	}
	f.set |= otherLimit
	return f, true
}

// lowerLimit lowers the limit of an answer to the number that the refusal names, or to the configured limit, or to half.
func lowerLimit(conf *ModelConfig, f forms, cl call, text, message string) (forms, bool) {
	if cl.limit < 2 || !saysOutput().MatchString(text) {
		return f, false
	}
	n := largestBelow(leastOutput, cl.limit, message)
	if n == 0 && conf.MaxOutput > 0 && conf.MaxOutput < cl.limit {
		n = conf.MaxOutput
	}
	if n == 0 {
		n = cl.limit / 2
	}
	f.output = n
	return f, true
}

// raiseLimit raises a short limit of an answer to the number that the refusal names, or to room for some words, and then for thoughts.
// Models that think count their thoughts.
func (f forms) raiseLimit(cl call, text, message string) (forms, bool) {
	if cl.limit == 0 || cl.limit < f.least || cl.limit >= roomToThink || !saysLeast().MatchString(text) {
		return f, false
	}
	switch n := largestBelow(cl.limit+1, roomToThink, message); {
	case n > 0:
		f.least = n
	case cl.limit < leastOutput:
		f.least = leastOutput
	default:
		f.least = roomToThink
	}
	return f, true
}

const roomToThink = 4096

var numbers = regexp.MustCompile(`[\w.-]*(?:\d{1,3}(?:,\d{3})+|\d+)[kK]?\b`)

// largestBelow reads the largest number from least up to n, without n; 0 for none. Parts of names are no numbers.
func largestBelow(least, n int, text string) int {
	best := 0
	for _, word := range numbers.FindAllString(text, -1) {
		scale := 1
		if cut := strings.TrimRight(word, "kK"); cut != word {
			word, scale = cut, 1024
		}
		if v, err := strconv.Atoi(strings.ReplaceAll(strings.Trim(word, ",."), ",", "")); err == nil && v*scale >= least && v*scale < n {
			best = max(best, v*scale)
		}
	}
	return best
}

// fitWindow asks for a shorter answer where the messages fit into the window and the answer beside them does not.
func (f forms) fitWindow(cl call, text string) (forms, bool) {
	if f.room > 0 || cl.limit == 0 {
		return f, false
	}
	for _, one := range saysRoom() {
		m := one.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		window, _ := strconv.Atoi(m[one.SubexpIndex("window")])
		input, _ := strconv.Atoi(m[one.SubexpIndex("input")])
		if room := window - input - 1; room >= 4*leastOutput && room < cl.limit {
			f.room = room
			return f, true
		}
	}
	return f, false
}

// dropField leaves out an optional field that the refusal names.
func (f forms) dropField(cl call, text string) (forms, bool) {
	for _, field := range cl.optional {
		if named(text, field) && (field == "temperature" || refusesField().MatchString(text)) {
			f.without = append(slices.Clone(f.without), field)
			return f, true
		}
	}
	if cl.shows&noTools != 0 && !f.has(noTools) && named(text, "tools") && refusesField().MatchString(text) {
		f.set |= noTools
		return f, true
	}
	return f, false
}

// named finds a field as a whole word: user is no part of user_id.
func named(text, field string) bool {
	for rest := text; ; {
		at := strings.Index(rest, field)
		if at < 0 {
			return false
		}
		before, after := rest[:at], rest[at+len(field):]
		if (before == "" || !wordEnd.MatchString(before)) && !wordStart.MatchString(after) {
			return true
		}
		rest = after
	}
}

var (
	wordEnd   = regexp.MustCompile(`[A-Za-z0-9_]$`)
	wordStart = regexp.MustCompile(`^[A-Za-z0-9_]`)
)

// suspectForm changes what no answered request ever had.
func (ls *lessons) suspectForm(f forms, cl call) (forms, bool) {
	doubtful := suspects & cl.shows &^ property(ls.answered.Load()) &^ property(ls.suspected.Load()) &^ f.set
	if doubtful == 0 {
		return f, false
	}
	ls.suspected.Or(uint64(doubtful))
	if f.set |= doubtful; f.has(longAnswer) {
		f.least = max(f.least, leastOutput)
	}
	f.set &^= longAnswer
	return f, true
}

// keepForms stores the forms of an answered request, and logs each new property. Forms of a call that failed are forgotten.
func (ls *lessons) keepForms(ctx context.Context, f forms, shows property) {
	if seen := ls.answered.Load(); property(seen)|shows != property(seen) {
		ls.answered.Or(uint64(shows))
	}
	for {
		old := ls.forms.Load()
		merged := *old
		merged.set |= f.set
		merged.way = max(old.way, f.way)
		merged.least = max(old.least, f.least)
		if f.output > 0 && (old.output == 0 || f.output < old.output) {
			merged.output = f.output
		}
		for _, field := range f.without {
			if !slices.Contains(merged.without, field) {
				merged.without = append(slices.Clone(merged.without), field)
			}
		}
		before, after := old.describeForms(), merged.describeForms()
		if slices.Equal(before, after) {
			return
		}
		if !ls.forms.CompareAndSwap(old, &merged) {
			continue
		}
		for _, text := range after {
			if !slices.Contains(before, text) {
				zerolog.Ctx(ctx).Info().Str("model", ls.conf.Name).Str("property", text).Msg("Property of a model was learned from a refusal")
			}
		}
		return
	}
}
