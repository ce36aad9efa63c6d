package upkeep_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/memstore"
)

// attic is a memory that needs tidying up.
type attic struct {
	mu      sync.Mutex
	backlog int
	expired int
	old     []memory.Memory
	kept    []memory.Draft
	asked   int // for overfull scopes
	follows bool
	mem     *memstore.Store // holds the sessions that are charged; nil: no session is
}

func (a *attic) IndexBacklog(_ context.Context, limit int) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(a.backlog, limit)
	a.backlog -= n
	return n, nil
}

func (a *attic) DeleteExpired(context.Context) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.expired
	a.expired = 0
	return n, nil
}

func (a *attic) Mark(context.Context, sessions.ReplicaID, sessions.ReplicaStatus) error { return nil }

func (a *attic) Leader(context.Context) (sessions.Leader, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.follows {
		return sessions.Leader{Replica: "another"}, nil
	}
	return sessions.Leader{Replica: "a"}, nil
}

func (a *attic) OverfullScopes(_ context.Context, limit int, after memory.OverfullScope) ([]memory.OverfullScope, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if len(a.old) <= limit || after.Held > 0 {
		return nil, nil
	}
	return []memory.OverfullScope{{Scope: memory.ScopeGroup, ScopeID: "g", Held: len(a.old)}}, nil
}

func groupOf(m memory.Memory) memory.FactGroup {
	return memory.FactGroup{Scope: m.Scope, ScopeID: m.ScopeID, Session: m.SourceSession, Subject: m.SubjectID}
}

func (a *attic) FactGroups(context.Context, memory.OverfullScope) ([]memory.FactGroup, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	held := map[memory.FactGroup]int{}
	for _, m := range a.old {
		held[groupOf(m)]++
	}
	var piles []memory.FactGroup
	for p, n := range held {
		p.Held = n
		piles = append(piles, p)
	}
	slices.SortFunc(piles, func(p, q memory.FactGroup) int {
		return cmp.Or(q.Held-p.Held, strings.Compare(string(p.Subject), string(q.Subject)))
	})
	return slices.DeleteFunc(piles, func(p memory.FactGroup) bool { return p.Held < 2 }), nil
}

// WithholdFacts implements memory.Upkeep.
func (a *attic) WithholdFacts(context.Context, sessions.Withholding) error { return nil }

func (a *attic) Oldest(_ context.Context, p memory.FactGroup, limit int) ([]memory.Memory, error) {
	p.Reads = ""
	a.mu.Lock()
	defer a.mu.Unlock()
	p.Held = 0
	of := slices.DeleteFunc(slices.Clone(a.old), func(m memory.Memory) bool { return groupOf(m) != p })
	return of[:min(limit, len(of))], nil
}

func (a *attic) Consolidate(_ context.Context, old []memory.Memory, drafts []memory.Draft) (memory.Receipt, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = append(a.kept, drafts...)
	a.old = slices.DeleteFunc(a.old, func(m memory.Memory) bool {
		return slices.ContainsFunc(old, func(o memory.Memory) bool { return o.ID == m.ID })
	})
	return memory.Receipt{Saved: []int64{100}}, nil
}

// Upkeep indexes facts without an index, deletes expired ones, and consolidates the oldest facts of a full scope.
func TestTidyIndexesExpiresAndConsolidates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &attic{backlog: 1200, expired: 3}
		for i := range 12 {
			a.old = append(a.old, memory.Memory{ID: int64(i + 1), Scope: memory.ScopeGroup, ScopeID: "g", Kind: memory.KindFact, Content: fmt.Sprintf("the heron cluster has node %d", i)})
		}
		var mu sync.Mutex // the two goroutines of the test's world have no other order that the race detector sees
		lossy := true
		m := &bottest.Script{Flush: func(context.Context, llm.Request) (llm.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if lossy {
				return bottest.SaveCall("The heron cluster has nodes."), nil
			}
			return bottest.SaveCall("The heron cluster has the nodes 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 11."), nil
		}}
		w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Model: m, Config: func(c *bot.Config) { bottest.Tidies(c, a); c.Remember.MaxPerScope = 10 }})
		bottest.After(bottest.BackgroundInterval)
		a.mu.Lock()
		bottest.Want(t, "without an index", a.backlog, 0)
		bottest.Want(t, "expired", a.expired, 0)
		bottest.Want(t, "facts after an answer that lost some", len(a.old), 12)
		a.mu.Unlock()
		mu.Lock()
		lossy = false
		mu.Unlock()
		bottest.After(2 * time.Hour)
		bottest.Want(t, "calls while the pile rests", len(m.Requests("flush")), 1)
		bottest.After(bottest.GroupPause)
		a.mu.Lock()
		bottest.Want(t, "facts and their consolidations", fmt.Sprint(len(a.old), len(a.kept)), "0 1")
		a.mu.Unlock()
		bottest.Want(t, "messages to the group", len(w.Wire.Texts()), 0)
	})
}

// atticOf is an attic with a number of facts about each of some people. Groups of equal size come in the order of their
// names.
func atticOf(each map[sessions.UserID]int) *attic {
	a := &attic{}
	for _, who := range slices.Sorted(maps.Keys(each)) {
		for i := range each[who] {
			a.old = append(a.old, memory.Memory{
				ID: int64(len(a.old) + 1), Scope: memory.ScopeGroup, ScopeID: "g", Kind: memory.KindFact, SubjectID: who,
				Content: fmt.Sprintf("%s carries parcel %d", who, i),
			})
		}
	}
	return a
}

// joining answers like a model that joins the facts of some people well and loses those of the rest.
func joining(good ...string) func(context.Context, llm.Request) (llm.Response, error) {
	return func(_ context.Context, r llm.Request) (llm.Response, error) {
		for _, who := range good {
			if shown := bottest.Transcript(r.Messages); strings.Contains(shown, who+" carries") {
				return bottest.SaveCall(who + " carries parcels 0, 1, 2, 3 and 4"), nil
			}
		}
		return bottest.SaveCall("somebody carries something"), nil
	}
}

// A group that can't be consolidated does not block its scope. The facts about the next person are tried in the same
// check, up to the cap.
func TestConsolidationTriesTheNextGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := atticOf(map[sessions.UserID]int{"ann": 5, "bob": 5, "cid": 5, "dan": 2})
		m := &bottest.Script{Flush: joining("bob", "cid")}
		bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Model: m, Config: func(c *bot.Config) { bottest.Tidies(c, a); c.Remember.MaxPerScope = 13 }})
		bottest.After(bottest.BackgroundInterval)
		var kept []string
		for _, d := range a.kept {
			kept = append(kept, fmt.Sprintf("%s %d-%d", d.SubjectID, d.StartSeq, d.EndSeq))
		}
		bottest.Want(t, "consolidated groups", kept, []string{"bob 0-0"})
		bottest.Want(t, "calls", len(m.Requests("flush")), 2)
		bottest.Want(t, "left", len(a.old), 12)
	})
}

// One replica pays. Operators get one warning a day about a scope that can't be consolidated.
func TestOverfullScopeIsLoggedOnceADay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := atticOf(map[sessions.UserID]int{"ann": 2, "bob": 2, "cid": 1, "dan": 1, "eve": 1})
		a.follows = true
		m := &bottest.Script{Flush: joining()}
		w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Model: m, Config: func(c *bot.Config) { c.Elector = a; bottest.Tidies(c, a); c.Remember.MaxPerScope = 3 }})
		bottest.After(3 * time.Hour)
		bottest.Want(t, "looks and calls of one that does not lead", fmt.Sprint(a.asked, len(m.Requests("flush"))), "0 0")
		a.mu.Lock()
		a.follows = false
		a.mu.Unlock()
		bottest.After(23 * time.Hour)
		const words = "Consolidation of an overfull scope merged no facts, all stay"
		bottest.Want(t, "lines in the log", len(w.Log.Lines(t, words)), 1)
		bottest.Want(t, "calls", len(m.Requests("flush")), 2*3) // at once, 6 hours and 12 hours later
		bottest.After(2 * time.Hour)
		bottest.Want(t, "lines a day later", len(w.Log.Lines(t, words)), 2)
		bottest.Want(t, "facts", len(a.old), 7)
	})
}

// Consolidation is charged to the day of the session that the facts come from, also without a result. A session over
// its share of the day waits for the next day, and operators get no warning.
func TestConsolidationIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		people := map[sessions.UserID]int{}
		for i := range 8 {
			people[sessions.UserID(fmt.Sprint("p", i))] = 2
		}
		a := atticOf(people)
		for i := range a.old {
			a.old[i].SourceSession = bottest.Group
		}
		m := &bottest.Script{Flush: func(context.Context, llm.Request) (llm.Response, error) {
			r := bottest.SaveCall("somebody carries something")
			r.Usage, r.Model = sessions.Usage{Prompt: 90, Completion: 10}, "small"
			return r, nil
		}}
		w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Model: m, Config: func(c *bot.Config) {
			bottest.Tidies(c, a)
			c.Remember.MaxPerScope, c.Compaction.DailyTokens, c.Compaction.Policy.Flush = 3, 1200, false
		}})
		a.mem = w.Store.Mem
		w.Say("m1", "alice", "hello")
		spent := w.State(bottest.Group).SpentToday
		bottest.After(time.Hour)
		bottest.Want(t, "spent", w.State(bottest.Group).SpentToday-spent, 300)
		bottest.Want(t, "calls", len(m.Requests("flush")), 3)
		bottest.Want(t, "models", []string{w.Store.Paid[0].Model, w.Store.Paid[2].Model}, []string{"small", "small"})
		bottest.After(9 * time.Hour)
		bottest.Want(t, "calls of the day", len(m.Requests("flush")), 3)
		const words = "Consolidation of an overfull scope merged no facts, all stay"
		bottest.Want(t, "lines in the log", len(w.Log.Lines(t, words)), 0)
		bottest.After(24 * time.Hour)
		bottest.Want(t, "calls of two days", len(m.Requests("flush")), 6)
	})
}

// many is an attic with a number of overfull scopes.
type many struct {
	*attic
	scopes int
}

func (a *many) OverfullScopes(_ context.Context, _ int, after memory.OverfullScope) (out []memory.OverfullScope, _ error) {
	for i := range a.scopes {
		if after.Held == 0 {
			out = append(out, memory.OverfullScope{Scope: memory.ScopeGroup, ScopeID: fmt.Sprint("g", i), Held: 100})
		}
	}
	return out, nil
}

func (a *many) FactGroups(_ context.Context, c memory.OverfullScope) (out []memory.FactGroup, _ error) {
	for i := range 7 {
		out = append(out, memory.FactGroup{Scope: c.Scope, ScopeID: c.ScopeID, Subject: sessions.UserID(fmt.Sprint("p", i)), Held: 2})
	}
	return out, nil
}

// WithholdFacts implements memory.Upkeep.
func (a *many) WithholdFacts(context.Context, sessions.Withholding) error { return nil }

func (a *many) Oldest(_ context.Context, p memory.FactGroup, _ int) (out []memory.Memory, _ error) {
	p.Reads = ""
	for i := range 2 {
		out = append(out, memory.Memory{ID: int64(i + 1), Scope: p.Scope, ScopeID: p.ScopeID, SubjectID: p.Subject, Content: fmt.Sprint("parcel ", i)})
	}
	return out, nil
}

// One check calls a model a bounded number of times, however many scopes are overfull. The next check goes on with the
// remaining scopes.
func TestConsolidationCallsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &bottest.Script{Flush: joining()}
		bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Model: m, Config: func(c *bot.Config) { bottest.Tidies(c, &many{&attic{}, 11}); c.Remember.MaxPerScope = 3 }})
		bottest.After(bottest.BackgroundInterval)
		bottest.Want(t, "calls of a look", len(m.Requests("flush")), bottest.MaxTidyCalls)
		bottest.After(bottest.TidyInterval + bottest.BackgroundInterval)
		bottest.Want(t, "calls of two", len(m.Requests("flush")), 11*7)
	})
}
