package bench

import (
	"context"
	"fmt"
	"time"

	"ebb/cmd/lab/rig"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/localpg"
	"ebb/sql/yardstick"
)

const (
	eraseGroups = 2_000
	eraseEvents = 490    // in each group
	eraseBusy   = 20_000 // events of the first group
	eraseFacts  = 20     // in each group
	eraseRuns   = 20     // people and facts that are erased, in each row
	eraseShare  = 3      // groups in which an erased person spoke once, besides their private chat
	eraseLimit  = 100 * time.Millisecond

	eraseRobot sessions.RobotCode = "erase"
)

// measureErasure uses the storage's calls, not the gateway's.
func (b *suite) measureErasure(ctx context.Context) ([]rig.Figure, error) {
	world := eraseWorld{words: newSearchWorld()}
	return b.onOwnServer(ctx, "erasure", world.fillStore, &localpg.Options{Buffers: searchBuffers}, func(server *localpg.Server) ([]rig.Figure, error) {
		return world.measure(ctx, server.URL())
	})
}

func (w *eraseWorld) measure(ctx context.Context, url string) (figures []rig.Figure, err error) {
	if w.store, err = sql.Open(ctx, sql.Options{URL: url, MaxConns: 4}); err != nil {
		return nil, err
	}
	defer w.store.Close()
	for _, row := range []struct {
		what  string
		limit time.Duration // 0: none
		erase func(context.Context, int) (time.Duration, error)
	}{
		{"/forget me, the preview", eraseLimit, w.previewPerson},
		{"/forget me, confirmed", eraseLimit, w.forgetPerson},
		{"/memory forget, one fact", eraseLimit, w.forgetFact},
		{fmt.Sprintf("/memory forget, one fact of a group of %d events", eraseBusy), 0, w.forgetBusyFact},
	} {
		var took []time.Duration
		for i := range eraseRuns {
			one, err := row.erase(ctx, i)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", row.what, err)
			}
			took = append(took, one)
		}
		figures = append(figures, p95Figure(row.what+", p95 at 1 M events", took, row.limit))
	}
	return figures, nil
}

// eraseWorld is groups of equal size but for the first, and people with few messages.
type eraseWorld struct {
	words *searchWorld
	store *sql.Store
}

func eraseGroup(i int) sessions.Key {
	return sessions.NewKey(eraseRobot, sessions.ConversationID(fmt.Sprint("group-", i)), "")
}

func erasePrivate(i int) sessions.Key {
	return sessions.NewKey(eraseRobot, sessions.ConversationID(fmt.Sprint("private-", i)), "")
}

func erasedPerson(i int) sessions.UserID { return sessions.UserID(fmt.Sprintf("quiet-%04d", i)) }

func factPlace(n int) int64     { return int64(n*20 + 1) }
func factID(group, n int) int64 { return int64(group*eraseFacts + n + 1) }
func factText(group, n int) string {
	return fmt.Sprintf("the release branch %d of project %d is cut by the operations desk", n, group)
}

func eventsOf(group int) int64 {
	if group == 0 {
		return eraseBusy
	}
	return eraseEvents
}

func (w *eraseWorld) fillStore(ctx context.Context, url string) error {
	if _, err := sql.Migrate(ctx, url); err != nil {
		return err
	}
	var all []sessions.Session
	var memories []memory.Memory
	for g := range eraseGroups {
		key := eraseGroup(g)
		_, conversation := key.Conversation()
		all = append(all, sessions.Session{
			Key: key, RobotCode: eraseRobot, ConversationID: conversation, ConversationType: sessions.Group, LastSeq: eventsOf(g),
		})
		for n := range eraseFacts {
			memories = append(memories, memory.Memory{
				ID: factID(g, n), Scope: memory.ScopeGroup, ScopeID: memory.GroupID(eraseRobot, conversation), Kind: memory.KindFact,
				Content: factText(g, n), SaidBy: w.speaker(g, factPlace(n)), SourceSession: key, SourceGroup: memory.GroupID(eraseRobot, conversation),
				StartSeq: factPlace(n), EndSeq: factPlace(n), CreatedAt: searchBegan,
			})
		}
	}
	for i := range eraseRuns {
		_, conversation := erasePrivate(i).Conversation()
		all = append(all, sessions.Session{
			Key: erasePrivate(i), RobotCode: eraseRobot, ConversationID: conversation, ConversationType: sessions.Private, LastSeq: 2,
		})
	}
	return loadWorld(ctx, url, all, memories, w.drawEvents)
}

// speaker returns each erased person at one place in some groups.
func (w *eraseWorld) speaker(group int, place int64) sessions.UserID {
	if i := group/eraseShare - 1; place == 300 && 0 <= i && i < eraseRuns {
		return erasedPerson(i)
	}
	return sessions.UserID(fmt.Sprintf("member-%d-%d", group, place%23))
}

// drawEvents interleaves the groups, as messages arrive.
func (w *eraseWorld) drawEvents(yield func(yardstick.LoadedEvent) bool) {
	for i := range eraseRuns {
		for place, role := range []sessions.Role{sessions.RoleUser, sessions.RoleAssistant} {
			e := sessions.Event{Seq: int64(place + 1), Role: role, Content: w.words.drawText(20), CreatedAt: searchBegan}
			if role == sessions.RoleUser {
				e.SenderID, e.SenderNick = erasedPerson(i), fmt.Sprint("Quiet", i)
			}
			if !yield(yardstick.LoadedEvent{Key: erasePrivate(i), Event: e}) {
				return
			}
		}
	}
	for place := int64(1); place <= eraseBusy; place++ {
		for g := range eraseGroups {
			if place > eventsOf(g) {
				break // only the first group goes on
			}
			e := sessions.Event{Seq: place, Role: sessions.RoleUser, SenderID: w.speaker(g, place), CreatedAt: searchBegan.Add(time.Duration(place) * 10 * time.Minute)}
			e.SenderNick = "Nick " + string(e.SenderID)
			if place%2 == 0 && place != 300 {
				e.Role, e.SenderID, e.SenderNick = sessions.RoleAssistant, "", ""
			}
			e.Content = w.words.drawText(4 + w.words.rand.IntN(20))
			if n := int(place-1) / 20; place == factPlace(n) && n < eraseFacts {
				e.Content = factText(g, n)
			}
			if !yield(yardstick.LoadedEvent{Key: eraseGroup(g), Event: e}) {
				return
			}
		}
	}
}

func (w *eraseWorld) ask(ctx context.Context, key sessions.Key, who sessions.UserID, text string) (memory.Asking, error) {
	if _, err := w.store.Leases.Beat(ctx, "bench"); err != nil {
		return memory.Asking{}, err
	}
	_, conversation := key.Conversation()
	a, err := w.store.Inbox.Accept(ctx, "bench", key, sessions.Message{
		RobotCode: eraseRobot, ConversationID: conversation, ConversationType: sessions.Group, ID: sessions.MessageID("asked-" + string(key) + text),
		SenderID: who, StaffID: who, SenderNick: "Nick " + string(who), Text: text, Kind: "text",
	})
	return memory.Asking{Lease: a.Lease, Event: a.EventID, Language: "en"}, err
}

func (w *eraseWorld) previewPerson(ctx context.Context, i int) (time.Duration, error) {
	began := time.Now()
	p, err := w.store.Erasure.PreviewForget(ctx, memory.Forget{Robot: eraseRobot, Person: erasedPerson(i), Self: true})
	if err == nil && p.Messages != 1+eraseShare {
		err = fmt.Errorf("the preview counts %d messages", p.Messages)
	}
	return time.Since(began), err
}

func (w *eraseWorld) forgetPerson(ctx context.Context, i int) (time.Duration, error) {
	from, err := w.ask(ctx, eraseGroup((i+1)*eraseShare), erasedPerson(i), "/forget me yes")
	if err != nil {
		return 0, err
	}
	began := time.Now()
	done, err := w.store.Erasure.ForgetPerson(ctx, memory.Forget{Robot: eraseRobot, Person: erasedPerson(i), Self: true, From: from})
	if err == nil && done.Sessions != 1+eraseShare {
		err = fmt.Errorf("%d sessions were changed", done.Sessions)
	}
	return time.Since(began), err
}

func (w *eraseWorld) forgetFact(ctx context.Context, i int) (time.Duration, error) {
	return w.forgetFactOf(ctx, eraseGroups-1-i, 3)
}

func (w *eraseWorld) forgetBusyFact(ctx context.Context, i int) (time.Duration, error) {
	return w.forgetFactOf(ctx, 0, i)
}

func (w *eraseWorld) forgetFactOf(ctx context.Context, group, n int) (time.Duration, error) {
	who := w.speaker(group, factPlace(n))
	from, err := w.ask(ctx, eraseGroup(group), who, fmt.Sprint("/memory forget ", factID(group, n)))
	if err != nil {
		return 0, err
	}
	began := time.Now()
	done, err := w.store.Erasure.ForgetMemory(ctx, factID(group, n), from)
	if err == nil && done.Memories != 1 {
		err = fmt.Errorf("%d facts were deleted", done.Memories)
	}
	return time.Since(began), err
}
