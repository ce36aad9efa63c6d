package audit

import (
	"slices"
	"strings"
	"time"

	"ebb/compaction"
	"ebb/compaction/identify"
	"ebb/sessions"
	"ebb/sessions/redact"
)

// Bounds of required identifiers: more would leave no room for their context.
const (
	maxMust     = 48
	maxNames    = 12
	maxFromTool = 8
	maxValue    = 300 // bytes of an identifier
	lineTokens  = 4   // tokens of a list entry's frame
)

const (
	byTool = iota + 1
	byModel
	byPerson
)

type rankedIdentifier struct {
	identify.Identifier
	class int
	times int
	last  int // index of the event; -1 in the previous summary
}

// Read finds the required and all known identifiers.
func (src Source) Read() Reference {
	names := src.speakerNames()
	all := identifierIndex{keys: map[string]bool{}, loose: map[string]bool{}}
	rank := map[string]*rankedIdentifier{}
	note := func(id identify.Identifier, class, at int) {
		if s := rank[id.Key]; s != nil {
			s.class, s.times, s.last = max(s.class, class), s.times+1, at
			return
		}
		rank[id.Key] = &rankedIdentifier{Identifier: id, class: class, times: 1, last: at}
	}
	var texts strings.Builder
	f := identify.Fold(dropMarked(redact.Secrets(src.Previous), names))
	texts.WriteString(f.Text)
	for _, id := range identify.FindWithNames(f, names) {
		all.addAll(id)
		note(id, byModel, -1)
	}
	spoke := map[string]int{}
	for i, e := range src.Events {
		text := src.Cleaned.EventText(e)
		f := identify.Fold(text)
		who := quoteSafely(speakerOf(e))
		texts.WriteString("\n" + who + "\n" + f.Text)
		for _, id := range identify.FindWithNames(f, names) {
			all.addAll(id)
			id.Who, id.Seq, id.Context = who, e.Seq, quoteAround(text, id.From, id.To)
			note(id, authorOf(e), i)
		}
		all.addAll(src.frameIdentifiers(e)...)
		if e.Role == sessions.RoleUser {
			for _, id := range identify.FindWithNames(identify.Fold(sessions.Nick(e.SenderNick)), names) {
				if spoke[id.Key]++; id.Type == identify.TypeName && spoke[id.Key] > 1 { // one message of a person may not matter
					id.Seq = e.Seq
					note(id, byModel, i)
				}
			}
		}
	}
	all.text = identify.LowerASCII([]byte(texts.String()))
	must := src.chooseRequired(rank)
	for _, id := range must { // alone on a line, a value may read as another kind
		all.addAll(identify.FindWithNames(identify.Fold(listItem(id)), names)...)
	}
	return Reference{Must: must, known: all, names: names}
}

func authorOf(e sessions.Event) int {
	switch {
	case e.Role == sessions.RoleUser:
		return byPerson
	case e.Role == sessions.RoleTool || len(e.ToolCalls) > 0:
		return byTool
	}
	return byModel
}

func speakerOf(e sessions.Event) string {
	switch e.Role {
	case sessions.RoleUser:
		return sessions.Speaker(e.SenderNick, e.SenderID)
	case sessions.RoleTool:
		return e.ToolName
	}
	return ""
}

func (src Source) frameIdentifiers(e sessions.Event) []identify.Identifier {
	ids := []identify.Identifier{{Key: "num:" + formatSeq(e.Seq)}}
	if e.CreatedAt.IsZero() {
		return ids
	}
	loc := src.Location
	if loc == nil {
		loc = time.UTC
	}
	t := e.CreatedAt.In(loc)
	day, _ := identify.Date(t.Year(), int(t.Month()), t.Day())
	month, _ := identify.Date(t.Year(), int(t.Month()), 0)
	return append(ids, day, month, identify.Identifier{Key: t.Format("time:15:04")})
}

// chooseRequired prefers people to the model to tools, then late or repeated identifiers, then the newest.
func (src Source) chooseRequired(rank map[string]*rankedIdentifier) []identify.Identifier {
	late := len(src.Events) * 3 / 4
	weight := func(s *rankedIdentifier) int {
		n := 0
		if s.last >= late {
			n++
		}
		if s.times > 1 {
			n++
		}
		return n
	}
	var list []*rankedIdentifier
	for _, s := range rank {
		// The compaction deletes stored results, so their paths are useless.
		if _, stored := sessions.BlobAt(s.Text); stored || s.Weak || len(s.Text) > maxValue || redact.HasSecret(s.Text) {
			continue
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *rankedIdentifier) int {
		for _, d := range []int{b.class - a.class, weight(b) - weight(a), b.last - a.last, strings.Compare(a.Key, b.Key)} {
			if d != 0 {
				return d
			}
		}
		return 0
	})
	return src.fitBudget(list)
}

// fitBudget takes identifiers in their order until a bound is reached: of number, of names, of results of tools, and of tokens in the
// summary. A small summary can't hold all, and names are the least exact.
func (src Source) fitBudget(list []*rankedIdentifier) []identify.Identifier {
	var must []identify.Identifier
	names, tools, tokens := 0, 0, 0
	exact := map[string]bool{}
	for _, s := range list {
		exact[s.Loose] = true
	}
	for _, s := range list {
		switch {
		case len(must) == maxMust:
			return must
		case exact[s.Key]: // another spelling is more exact
			continue
		case s.Type == identify.TypeName && names == maxNames, s.class == byTool && tools == maxFromTool:
			continue
		}
		if src.Count != nil && src.Budget > 0 {
			n := src.Count(s.Text) + lineTokens
			if tokens+n > src.Budget/compaction.RequiredShare {
				continue
			}
			tokens += n
		}
		if s.Type == identify.TypeName {
			names++
		}
		if s.class == byTool {
			tools++
		}
		must = append(must, s.Identifier)
	}
	return must
}
