package sessionstest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ebb/sessions"
)

func askersOf(group sessions.ConversationID, people ...sessions.UserID) sessions.Askers {
	return sessions.Askers{Robot: "robot", Group: group, People: people}
}

// admit sorts the reached limits by person.
func (b *suite) admit(limits sessions.Limits, a sessions.Askers) []sessions.Reached {
	b.Helper()
	reached, err := b.Store.Limits.Admit(b.ctx, limits, a)
	b.checkError(err)
	slices.SortFunc(reached, func(x, y sessions.Reached) int { return strings.Compare(string(x.Person), string(y.Person)) })
	return reached
}

func testAdmit(b *suite) {
	limits := sessions.Limits{PersonTurns: 2}
	if r := b.admit(limits, askersOf("g1", "alice")); len(r) > 0 {
		b.Errorf("the first turn met %+v", r)
	}
	reached, err := b.Other.Limits.Admit(b.ctx, limits, askersOf("g2", "alice", "bob"))
	b.checkError(err)
	if len(reached) > 0 {
		b.Errorf("the second turn, at another replica, met %+v", reached)
	}
	r := b.admit(limits, askersOf("g1", "alice", "bob"))
	if len(r) != 1 || r[0].Limit != sessions.PersonTurns || r[0].Person != "alice" {
		b.Fatalf("the third turn met %+v, want the limit of one person", r)
	}
	if left := time.Until(r[0].Until); left <= 0 || left > time.Minute {
		b.Errorf("the window ends in %v, want at most a minute", left)
	}
	used, err := b.Other.Limits.Used(b.ctx, askersOf("g1", "bob"))
	b.checkError(err)
	if used.PersonTurns.Count != 2 || used.GroupTurns != (sessions.LimitUse{}) {
		b.Errorf("used are %+v, want 2 turns: the other person was admitted", used)
	}
	if left := time.Until(used.PersonTurns.Until); left <= 0 || left > time.Minute {
		b.Errorf("the window that is read ends in %v, want at most a minute", left)
	}
	own, err := b.Store.Limits.Used(b.ctx, askersOf("g1", "alice"))
	b.checkError(err)
	if !own.PersonTurns.Until.Equal(r[0].Until) {
		b.Errorf("the window that is read ends at %v, want %v as with the refused turn", own.PersonTurns.Until, r[0].Until)
	}
	if own.PersonTokens != (sessions.LimitUse{}) {
		b.Errorf("used tokens are %+v, want no window", own.PersonTokens)
	}
	if r := b.admit(sessions.Limits{}, askersOf("g1", "alice")); len(r) > 0 {
		b.Errorf("without a limit the turn met %+v", r)
	}
	if r := b.admit(limits, sessions.Askers{Robot: "other", People: []sessions.UserID{"alice"}}); len(r) > 0 {
		b.Errorf("with another robot the turn met %+v", r)
	}
}

func testAdmitGroup(b *suite) {
	limits := sessions.Limits{PersonTurns: 3, GroupTurns: 1}
	b.admit(limits, askersOf("g1", "alice"))
	for range 3 {
		r := b.admit(limits, askersOf("g1", "alice", "bob"))
		if len(r) != 1 || r[0].Limit != sessions.GroupTurns || r[0].Person != "" {
			b.Fatalf("the turn met %+v, want the limit of the group", r)
		}
	}
	if r := b.admit(limits, sessions.Askers{Robot: "robot", People: []sessions.UserID{"alice"}}); len(r) > 0 {
		b.Errorf("a private chat met %+v, want nothing: refused turns count nowhere", r)
	}
	for range 2 {
		b.admit(sessions.Limits{PersonTurns: 2, GroupTurns: 5}, askersOf("g2", "alice"))
	}
	used, err := b.Store.Limits.Used(b.ctx, askersOf("g2", "alice"))
	b.checkError(err)
	if used.GroupTurns.Count != 0 {
		b.Errorf("the group used %d turns, want 0: its only asker was over their limit", used.GroupTurns.Count)
	}
}

func testAdmitUnidentified(b *suite) {
	limits := sessions.Limits{UnidentifiedTurns: 2}
	a := askersOf("g1", "alice", "peer")
	a.Unidentified = []sessions.UserID{"peer"}
	for range 2 {
		if r := b.admit(limits, a); len(r) > 0 {
			b.Fatalf("a turn within the limit met %+v", r)
		}
	}
	for range 2 {
		r := b.admit(limits, a)
		if len(r) != 1 || r[0].Limit != sessions.UnidentifiedTurns || r[0].Person != "peer" {
			b.Fatalf("the turn met %+v, want the limit of the sender without a staff id alone", r)
		}
		if left := time.Until(r[0].Until); left < 55*time.Minute || left > time.Hour {
			b.Errorf("the window ends in %s, want an hour after the first turn", left)
		}
	}
	used, err := b.Store.Limits.Used(b.ctx, askersOf("g1", "peer"))
	b.checkError(err)
	if used.UnidentifiedTurns.Count != 2 {
		b.Errorf("%d turns are counted, want 2: refused ones count nowhere", used.UnidentifiedTurns.Count)
	}
}

func testAdmitAtOnce(b *suite) {
	const tries, bound = 12, 5
	var admitted atomic.Int32
	var wg sync.WaitGroup
	for i := range tries {
		store := b.Store
		if i%2 == 0 {
			store = b.Other
		}
		wg.Go(func() {
			reached, err := store.Limits.Admit(b.ctx, sessions.Limits{PersonTurns: bound}, askersOf("g1", "alice"))
			switch {
			case err != nil:
				b.Errorf("admitting a turn: %v", err)
			case len(reached) == 0:
				admitted.Add(1)
			}
		})
	}
	wg.Wait()
	if n := admitted.Load(); n != bound {
		b.Errorf("%d of %d turns were admitted, want %d", n, tries, bound)
	}
}

// Each kind of limit keeps an admission with the messages of the admitted, through a death of the process and an abandoned turn.
func testAdmitKeeps(b *suite) {
	for name, limits := range map[string]sessions.Limits{
		"a person's turns": {PersonTurns: 1}, "a person's tokens": {PersonTokens: 10}, "all tokens": {Tokens: 1000}, "a group's turns": {GroupTurns: 5},
	} {
		k := sessions.Key("robot/" + name)
		send := func(id string, by sessions.UserID) int64 {
			a, err := b.Store.Inbox.Accept(b.ctx, replicaA, k, sessions.Message{RobotCode: "robot", ID: sessions.MessageID(id), SenderID: by, Text: "hi"})
			b.checkError(err)
			return a.EventID
		}
		b.sendBeat(replicaA)
		alice, bob := sessions.UserID("alice of "+name), sessions.UserID("bob of "+name)
		kept, refused := send("m1", alice), send("m2", bob)
		if limits.PersonTurns > 0 {
			b.admit(limits, askersOf("", bob))
		}
		if limits.PersonTokens > 0 {
			b.checkError(b.Store.Limits.SpendTokens(b.ctx, "robot", map[sessions.UserID]int{bob: 100}))
		}
		l, err := b.Store.Leases.Acquire(b.ctx, k, replicaA)
		b.checkError(err)
		b.beginTurn(l, 10)
		a := askersOf(sessions.ConversationID(name), alice)
		a.Key, a.Asked = k, []sessions.AskedMessage{{Event: kept, By: alice}}
		if limits.PersonTurns > 0 || limits.PersonTokens > 0 {
			a.People, a.Asked = append(a.People, bob), append(a.Asked, sessions.AskedMessage{Event: refused, By: bob})
		}
		b.admit(limits, a)
		b.checkError(b.Store.Turns.Abandon(b.ctx, l, nil))
		b.beginTurn(l, 10)
		b.Expire(b.T, replicaA)
		b.sendBeat(replicaB)
		l, err = b.Store.Leases.Acquire(b.ctx, k, replicaB)
		b.checkError(err)
		pending, err := b.Store.Inbox.Pending(b.ctx, k, 10)
		b.checkError(err)
		for _, e := range append(b.beginTurn(l, 10).Pending, pending...) {
			if e.Admitted != (e.ID == kept) {
				b.Errorf("%s: message %s of %s is admitted: %t", name, e.MsgID, e.SenderID, e.Admitted)
			}
		}
	}
}

// A person alone may use all turns of a group. Beside others a fifth is left to them at least, in the next window too.
func testGroupShare(b *suite) {
	limits := sessions.Limits{GroupTurns: 10}
	asks := func(group sessions.ConversationID, person sessions.UserID, want ...sessions.Limit) {
		b.Helper()
		var met []sessions.Limit
		for _, r := range b.admit(limits, askersOf(group, person)) {
			met = append(met, r.Limit)
			if until := time.Until(r.Until); until <= 0 || until > time.Minute {
				b.Errorf("%s met %+v, want an end within the minute", person, r)
			}
		}
		if !slices.Equal(met, want) {
			b.Errorf("%s met %v in %s, want %v", person, met, group, want)
		}
	}
	for range 10 {
		asks("alone", "eve")
	}
	asks("alone", "eve", sessions.GroupTurns)

	asks("shared", "alice")
	for range 8 {
		asks("shared", "eve")
	}
	asks("shared", "eve", sessions.GroupShare)
	used, err := b.Other.Limits.Used(b.ctx, askersOf("shared", "eve"))
	b.checkError(err)
	if used.GroupPart.Count != 8 || used.GroupOthers != 1 || !used.GroupPart.Until.Equal(used.GroupTurns.Until) {
		b.Errorf("used are %+v, want 8 beside 1", used)
	}
	if r := b.admit(limits, askersOf("shared", "eve", "alice")); len(r) != 1 || r[0].Limit != sessions.GroupShare || r[0].Person != "eve" {
		b.Errorf("a turn of two met %+v, want the share of one", r)
	}
	asks("shared", "alice", sessions.GroupTurns)

	for range 3 {
		asks("busy", "alice")
	}
	for range 7 {
		asks("busy", "eve")
	}
	asks("busy", "eve", sessions.GroupTurns)
	r := b.admit(limits, askersOf("busy", "eve", "alice"))
	if len(r) != 1 || r[0].Person != "" {
		b.Errorf("a full group met %+v", r)
	}

	for group, c := range map[sessions.ConversationID]struct {
		ago  time.Duration
		left int
		met  sessions.Limit
	}{
		"before": {sessions.RecentTurns - time.Minute, 2, sessions.GroupShare},
		"once":   {sessions.RecentTurns + time.Minute, 10, sessions.GroupTurns},
	} {
		for range 8 {
			asks(group, "alice")
		}
		b.EndWindows(b.T, c.ago)
		for range c.left {
			asks(group, "eve")
		}
		asks(group, "eve", c.met)
	}
}

// The same holds for the tokens of the installation.
func testTokensShare(b *suite) {
	limits, l := sessions.Limits{Tokens: 1000}, b.leaseWithMessages(4)
	spend := func(tokens int, person sessions.UserID) {
		b.Helper()
		t := b.beginTurn(l, 1)
		turn := sessions.TurnResult{Spent: sessions.Spending{Usage: sessions.Usage{Prompt: tokens}}, TakenTokens: []int{1}, Askers: []sessions.UserID{person}}
		turn.Taken = []int64{t.Pending[0].ID}
		b.commitTurn(l, turn)
		b.checkError(b.Store.Limits.SpendTokens(b.ctx, "robot", map[sessions.UserID]int{person: tokens}))
	}
	admitted := func(person sessions.UserID, want ...sessions.Limit) {
		b.Helper()
		var met []sessions.Limit
		for _, r := range b.admit(limits, askersOf("g", person)) {
			met = append(met, r.Limit)
		}
		if !slices.Equal(met, want) {
			b.Errorf("%s met %v, want %v", person, met, want)
		}
	}
	spend(700, "eve")
	admitted("eve")
	spend(120, "eve")
	admitted("eve")
	spend(1, "alice")
	admitted("eve", sessions.TokensShare)
	admitted("alice")
	others, err := b.Other.Limits.OthersTokens(b.ctx, "robot", "eve")
	b.checkError(err)
	if others != 1 {
		b.Errorf("the others used %d tokens, want 1", others)
	}
	spend(150, "alice")
	admitted("alice")
	r := b.admit(limits, askersOf("g", "eve", "alice"))
	if len(r) != 1 || r[0].Limit != sessions.TokensShare || r[0].Person != "eve" || r[0].Until.UTC().Hour() != 0 {
		b.Errorf("a turn of two met %+v, want the share of one until midnight", r)
	}
}

// Scheduled questions and compactions by hand have bounds of a day. Other turns don't count there.
func testWorkOfADay(b *suite) {
	limits := sessions.Limits{ScheduledTurns: 2, Compactions: 2}
	asks := func(work sessions.Work, key sessions.Key, person sessions.UserID, want ...sessions.Limit) {
		b.Helper()
		a := askersOf("g", person)
		a.Work, a.Key = work, key
		var met []sessions.Limit
		for _, r := range b.admit(limits, a) {
			met = append(met, r.Limit)
			if end := r.Until.UTC(); end.Hour()+end.Minute() != 0 {
				b.Errorf("%s ends at %v, want midnight", r.Limit, end)
			}
		}
		if !slices.Equal(met, want) {
			b.Errorf("%s of %s met %v, want %v", work, person, met, want)
		}
	}
	for range 3 {
		asks(sessions.Answering, "robot/k", "eve")
		asks(sessions.Commanded, "robot/k", "eve")
	}
	for range 2 {
		asks(sessions.Asking, "robot/k", "eve")
		asks(sessions.Compacting, "robot/k", "eve")
	}
	of := askersOf("g", "eve")
	of.Key = "robot/k"
	used, err := b.Other.Limits.Used(b.ctx, of)
	b.checkError(err)
	if used.ScheduledTurns.Count != 2 || used.Compactions.Count != 2 || used.Compactions.Until.UTC().Hour() != 0 {
		b.Errorf("used are %+v, want 2 scheduled turns and 2 compactions until midnight", used)
	}
	asks(sessions.Asking, "robot/k", "eve", sessions.ScheduledTurns)
	asks(sessions.Asking, "robot/k", "alice")
	asks(sessions.Compacting, "robot/k", "alice", sessions.Compactions)
	asks(sessions.Compacting, "robot/other", "eve")
	asks(sessions.Answering, "robot/k", "eve")
}

func testSpendTokens(b *suite) {
	people := []sessions.UserID{"alice", "bob", "carol"}
	b.checkError(b.Store.Limits.SpendTokens(b.ctx, "robot", map[sessions.UserID]int{"alice": 34, "bob": 33, "carol": 33}))
	b.checkError(b.Other.Limits.SpendTokens(b.ctx, "robot", map[sessions.UserID]int{"alice": 10}))
	total := 0
	for i, want := range []int{44, 33, 33} {
		used, err := b.Other.Limits.Used(b.ctx, askersOf("", people[i]))
		b.checkError(err)
		if used.PersonTokens.Count != want {
			b.Errorf("%s used %d tokens, want %d", people[i], used.PersonTokens.Count, want)
		}
		total += used.PersonTokens.Count
	}
	if total != 110 {
		b.Errorf("they used %d tokens together, want all 110", total)
	}
	r := b.admit(sessions.Limits{PersonTokens: 40}, askersOf("g1", people...))
	if len(r) != 1 || r[0].Limit != sessions.PersonTokens || r[0].Person != "alice" {
		b.Fatalf("the turn met %+v, want the tokens of one person", r)
	}
	if end := r[0].Until.UTC(); end.Hour()+end.Minute()+end.Second() != 0 || time.Until(end) > 24*time.Hour {
		b.Errorf("the window ends at %v, want midnight", end)
	}

	l := b.leaseWithMessages(1)
	b.checkError(b.Store.Ledger.Charge(b.ctx, l.Key, sessions.Spending{Kind: sessions.SpentFlush, Usage: sessions.Usage{Prompt: 70, Cached: 50, Completion: 30}}))
	if r := b.admit(sessions.Limits{Tokens: 101}, askersOf("g1", "dave")); len(r) > 0 {
		b.Errorf("below the installation's limit the turn met %+v", r)
	}
	r = b.admit(sessions.Limits{Tokens: 100, PersonTokens: 40}, askersOf("g1", "alice"))
	if len(r) != 1 || r[0].Limit != sessions.AllTokens || r[0].Person != "" || !r[0].Until.After(time.Now()) {
		b.Errorf("the turn met %+v, want the limit of the installation alone", r)
	}
	used, err := b.Other.Limits.Used(b.ctx, askersOf("g1", "alice"))
	b.checkError(err)
	if used.Tokens.Count != 100 || !used.Tokens.Until.Equal(r[0].Until) {
		b.Errorf("the installation used %+v, want 100 tokens until %v", used.Tokens, r[0].Until)
	}
	if !used.PersonTokens.Until.Equal(r[0].Until) {
		b.Errorf("the day of a person ends at %v, want %v", used.PersonTokens.Until, r[0].Until)
	}
}

func testNotify(b *suite) {
	due := func(n sessions.Notice, want bool, what string) {
		b.Helper()
		got, err := b.Store.Limits.Notify(b.ctx, n)
		b.checkError(err)
		if got != want {
			b.Errorf("%s: due is %v, want %v", what, got, want)
		}
	}
	hour := sessions.Notice{Kind: "person", Robot: "robot", Subject: "alice", Lasts: time.Hour}
	due(hour, true, "the first notice")
	if again, err := b.Other.Limits.Notify(b.ctx, hour); err != nil || again {
		b.Errorf("a second one at another replica is due (%v)", err)
	}
	other := hour
	other.Subject = "bob"
	due(other, true, "a notice about another person")
	other.Kind = "group"
	due(other, true, "a notice of another kind")

	window := sessions.Notice{Kind: "turns", Robot: "robot", Subject: "alice", Until: time.Now().Add(time.Hour), By: "msg-1"}
	due(window, true, "the notice of a limit")
	due(window, true, "the same notice after a crash")
	window.By = "msg-2"
	due(window, false, "the notice to another message")
	over := sessions.Notice{Kind: "over", Robot: "robot", Subject: "alice", Until: time.Now().Add(-time.Second), By: "msg-1"}
	due(over, true, "a notice of a window")
	over.By = "msg-2"
	due(over, true, "a notice after the window")

	for i := range sessions.NoticesPerMinute + 3 {
		stranger := sessions.Notice{Kind: "person", Robot: "robot", Subject: fmt.Sprint("stranger ", i), Lasts: time.Hour, Group: "g1"}
		due(stranger, i < sessions.NoticesPerMinute, fmt.Sprintf("notice %d in a group", i))
		stranger.Group = "g2"
		due(stranger, i >= sessions.NoticesPerMinute, fmt.Sprintf("notice %d, in another group", i))
	}
}
