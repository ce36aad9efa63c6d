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

// How many identifiers a summary is made to hold. More would leave no room for what they are about.
const (
	maxMust     = 48
	maxNames    = 12
	maxFromTool = 8
	maxValue    = 300 // bytes of an identifier that is worth copying
	lineTokens  = 4   // around a value in a list
)

// Whose words an identifier was in, by weight.
const (
	byTool = iota + 1
	byModel
	byPerson
)

// sighting is an identifier of a source with what its rank depends on.
type sighting struct {
	identify.Identifier
	class int
	times int
	last  int // index of the event; -1 in the previous summary
}

// read finds what a summary of the source has to hold, and all that it may.
func (src Source) Read() Reference {
	names := src.names()
	all := known{keys: map[string]bool{}, loose: map[string]bool{}}
	rank := map[string]*sighting{}
	note := func(id identify.Identifier, class, at int) {
		if s := rank[id.Key]; s != nil {
			s.class, s.times, s.last = max(s.class, class), s.times+1, at
			return
		}
		rank[id.Key] = &sighting{Identifier: id, class: class, times: 1, last: at}
	}
	var texts strings.Builder
	f := identify.Fold(dropMarked(redact.Secrets(src.Previous), names))
	texts.WriteString(f.Text)
	for _, id := range identify.FindWithNames(f, names) {
		all.add(id)
		note(id, byModel, -1)
	}
	spoke := map[string]int{}
	for i, e := range src.Events {
		text := src.Cleaned.EventText(e)
		f := identify.Fold(text)
		who := quoted(speakerOf(e))
		texts.WriteString("\n" + who + "\n" + f.Text)
		for _, id := range identify.FindWithNames(f, names) {
			all.add(id)
			id.Who, id.Seq, id.Context = who, e.Seq, around(text, id.From, id.To)
			note(id, authorOf(e), i)
		}
		all.add(src.clock(e)...)
		if e.Role == sessions.RoleUser {
			for _, id := range identify.FindWithNames(identify.Fold(sessions.Nick(e.SenderNick)), names) {
				if spoke[id.Key]++; id.Type == identify.TypeName && spoke[id.Key] > 1 { // who said one thing may not matter
					id.Seq = e.Seq
					note(id, byModel, i)
				}
			}
		}
	}
	all.text = identify.LowerASCII([]byte(texts.String()))
	must := src.choose(rank)
	for _, id := range must { // alone on a line, one may look like another kind of thing than among its neighbours
		all.add(identify.FindWithNames(identify.Fold(bullet(id)), names)...)
	}
	return Reference{Must: must, known: all, names: names}
}

// authorOf says whose words an event holds.
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

// clock is what the summariser reads beside an event: its number, day and time.
func (src Source) clock(e sessions.Event) []identify.Identifier {
	ids := []identify.Identifier{{Key: "num:" + itoa(e.Seq)}}
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

// choose ranks what was seen and keeps what there is room for: people's words before the model's and tools', then what
// was said late or more than once, then the newest.
func (src Source) choose(rank map[string]*sighting) []identify.Identifier {
	late := len(src.Events) * 3 / 4
	weight := func(s *sighting) int {
		n := 0
		if s.last >= late {
			n++
		}
		if s.times > 1 {
			n++
		}
		return n
	}
	var list []*sighting
	for _, s := range rank {
		// The path of a stored result leads nowhere after the compaction, which deletes that result.
		if _, stored := sessions.BlobAt(s.Text); stored || s.Weak || len(s.Text) > maxValue || redact.HasSecret(s.Text) {
			continue
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *sighting) int {
		for _, d := range []int{b.class - a.class, weight(b) - weight(a), b.last - a.last, strings.Compare(a.Key, b.Key)} {
			if d != 0 {
				return d
			}
		}
		return 0
	})
	return src.fit(list)
}

// fit keeps the first of a ranked list as far as there is room.
func (src Source) fit(list []*sighting) []identify.Identifier {
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
		case exact[s.Key]: // another spelling says more
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
