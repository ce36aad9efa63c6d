package draft

import (
	"testing"
	"time"

	"ebb/memory"
	"ebb/memory/classify"
	"ebb/memory/dates"
	"ebb/memory/text"
	"ebb/sessions"
	"ebb/sessions/sessionstest"
)

// The search of a message takes time in proportion to its length, for any content.
func TestGrowth(t *testing.T) {
	now := time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)
	for name, f := range map[string]func(string){
		"marks": func(s string) {
			classify.Candidate(s)
			classify.AsksToRemember(s)
			classify.RecallQuestion(s)
			classify.SelfReference(s)
		},
		"words":  func(s string) { text.Terms(text.Tokenize(s)); text.Trigrams(s) },
		"normal": func(s string) { text.Normalize(s); classify.TrimLead(s); text.NormalizeKey(s) },
		"split":  func(s string) { text.Split(s, 1000) },
		"evidence": func(s string) {
			e := sessions.Event{Seq: 1, Role: sessions.RoleUser, SenderID: "u", SenderNick: "张伟", Content: s, CreatedAt: now}
			Route([]memory.Fact{{Content: "张伟说密码在 a-b_c.a 里", Kind: memory.KindFact}}, Chat{Said: []sessions.Event{e}, Roster: RosterOf([]sessions.Event{e})})
		},
		"arguments":  func(s string) { _, _, _ = ParseSave(s) },
		"days in it": func(s string) { dates.Find(s, now) },
	} {
		t.Run(name, func(t *testing.T) { sessionstest.CheckGrowth(t, name, sessionstest.LongMessage, f) })
	}
}

// So does the search of a fact, which is shorter.
func TestGrowthOfFacts(t *testing.T) {
	now := time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)
	for name, f := range map[string]func(string){
		"unfit":     func(s string) { classify.Refuse(s) },
		"shells":    func(s string) { classify.DropRedacted(s + "[已隐去]") },
		"sensitive": func(s string) { classify.Sensitive(s) },
		"dates":     func(s string) { dates.Resolve(s, now) },
		"style":     func(s string) { classify.AnswerStyle(s) },
	} {
		t.Run(name, func(t *testing.T) { sessionstest.CheckGrowth(t, name, MaxFactBytes, f) })
	}
}
