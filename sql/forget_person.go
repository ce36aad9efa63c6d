package sql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// ForgetPerson implements memory.Rights. Each session is one transaction; those where the person said nothing come first,
// since what the bot repeats there is known by what it has from the others; the one that asks comes last, with memory, so
// that a process that ends before that is asked again.
func (s *Store) ForgetPerson(ctx context.Context, f memory.Forget) (memory.Forgotten, error) {
	done := memory.Forgotten{Lease: f.From.Lease}
	if f.Person == "" {
		return done, fmt.Errorf("forgetting nobody: %w", sessions.ErrRefused)
	}
	g := &forgetting{Store: s, f: f, done: &done, like: newLikeness()}
	err := g.run(ctx)
	if err != nil {
		return done, fmt.Errorf("forgetting a person: %w", refused(err))
	}
	return done, nil
}

// forgetting is one person's forgetting under way.
type forgetting struct {
	*Store
	f      memory.Forget
	who    person
	labels []string // how the bot writes the person's name: nobody else's words have it
	like   likeness // of what must not be repeated anywhere
	told   []string // what memory has of the person, some of it
	done   *memory.Forgotten
}

func (g *forgetting) run(ctx context.Context) error {
	if err := g.identify(ctx); err != nil {
		return err
	}
	if err := g.q.SessionsRevive(ctx, g.pool); err != nil {
		return err
	}
	rows, err := g.q.PersonSessions(ctx, g.pool, &dbsqlc.PersonSessionsParams{
		Person: string(g.f.Person), Robot: string(g.f.Robot),
	})
	if err != nil {
		return err
	}
	told, err := g.toldIn(ctx, rows)
	if err != nil {
		return err
	}
	rows = append(told, rows...)
	asking := g.f.From.Lease.Key
	for _, r := range rows {
		if r.SessionKey == asking {
			continue
		}
		alone, before := g.alone(r.SessionKey, r.RobotCode, r.ConversationID, r.ConversationType, r.Spoke), *g.done
		err = g.locked(ctx, r.SessionKey, func(tx pgx.Tx, row *dbsqlc.Session) error {
			*g.done = before // it may run more than once
			if alone {
				return g.delete(ctx, tx, r.SessionKey, 0)
			}
			return g.session(ctx, tx, row)
		})
		if err != nil && !errors.Is(err, sessions.ErrNotFound) { // somebody deleted it meanwhile
			return fmt.Errorf("session %s: %w", r.SessionKey, err)
		}
	}
	before := *g.done
	return g.patient(ctx, func(tx pgx.Tx) error {
		*g.done = before
		if asking != "" {
			if err := g.asking(ctx, tx, asking); err != nil {
				return fmt.Errorf("session %s: %w", asking, err)
			}
		}
		return g.memory(ctx, tx)
	})
}

// tellingPage is how many sessions are looked through at a time.
const tellingPage = 500

// toldIn lists sessions besides some where the person said nothing and the bot told something of them.
func (g *forgetting) toldIn(ctx context.Context, besides []dbsqlc.PersonSessionsRow) ([]dbsqlc.PersonSessionsRow, error) {
	listed := map[sessions.Key]bool{}
	for _, r := range besides {
		listed[r.SessionKey] = true
	}
	words := slices.Concat(g.like.words, g.told)
	var told []dbsqlc.PersonSessionsRow
	for after, more := sessions.Key(""), len(words) > 0; more; {
		keys, err := g.q.SessionKeys(ctx, g.pool, &dbsqlc.SessionKeysParams{
			AfterKey: string(after), Robot: string(g.f.Robot), MaxRows: tellingPage,
		})
		if err != nil {
			return nil, err
		}
		if more = len(keys) == tellingPage; len(keys) == 0 {
			break
		}
		after = keys[len(keys)-1]
		var among []string
		for _, k := range keys {
			if !listed[k] {
				among = append(among, string(k))
			}
		}
		if len(among) == 0 {
			continue
		}
		found, err := g.q.SessionsTellingOf(ctx, g.pool, &dbsqlc.SessionsTellingOfParams{SessionKeys: among, Words: words})
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			told = append(told, dbsqlc.PersonSessionsRow{
				SessionKey: f.SessionKey, RobotCode: f.RobotCode, ConversationID: f.ConversationID, ConversationType: f.ConversationType,
			})
		}
	}
	return told, nil
}

// identify learns the person's names, and what memory has of them.
func (g *forgetting) identify(ctx context.Context) error {
	nicks, err := g.q.PersonNicks(ctx, g.pool, string(g.f.Person))
	if err != nil {
		return err
	}
	g.who = person{id: g.f.Person, nicks: nicks}
	g.labels = []string{"(" + string(g.f.Person) + ")"}
	if sessions.Outside(g.f.Person) {
		g.labels = append(g.labels, string(g.f.Person))
		for _, n := range nicks {
			g.labels = append(g.labels, sessions.Speaker(n, g.f.Person))
		}
	}
	facts, err := g.q.MemoriesOfPerson(ctx, g.pool, g.theirs())
	if err != nil {
		return err
	}
	g.like.words = slices.Clone(g.labels)
	for _, m := range facts {
		if m.Kind == memory.KindDigest { // it tells of others too
			continue
		}
		g.like.learn(m.Content)
		if len(g.told) < maxTold && utf8.RuneCountInString(m.Content) >= minPhraseHan {
			g.like.say(m.Content)
			g.told = append(g.told, datesIn.ReplaceAllString(m.Content, ""))
		}
	}
	return nil
}

// theirs is what tells the person's memories from others'.
func (g *forgetting) theirs() *dbsqlc.MemoriesOfPersonParams {
	return &dbsqlc.MemoriesOfPersonParams{Person: string(g.f.Person), Words: g.labels, RobotSessions: g.robotSessions()}
}

// robotSessions is what the keys of the sessions begin with that it is about.
func (g *forgetting) robotSessions() string {
	if g.f.Robot == "" {
		return ""
	}
	return robotSessions(g.f.Robot)
}

// maxTold is how many facts are looked for in sessions where the person said nothing.
const maxTold = 200

// alone reports whether a session is the person's alone: their private chat, or theirs among the sessions of a group.
func (g *forgetting) alone(
	key sessions.Key, robot sessions.RobotCode, c sessions.ConversationID, kind sessions.ConversationType, spoke bool,
) bool {
	return kind == sessions.Private && spoke || key == sessions.NewKey(robot, c, g.f.Person)
}

// delete removes a session that is the person's alone, with whatever was learnt in it.
func (g *forgetting) delete(ctx context.Context, tx pgx.Tx, key sessions.Key, asked int64) error {
	drawn, err := g.q.MemoriesDrawn(ctx, tx, &dbsqlc.MemoriesDrawnParams{SessionKey: key, Person: string(g.f.Person)})
	if err != nil {
		return err
	}
	ids := make([]int64, len(drawn))
	for i, m := range drawn {
		ids[i] = m.ID
	}
	if err := g.forgetFacts(ctx, tx, ids, key, g.done); err != nil {
		return err
	}
	messages, err := g.q.SessionMessages(ctx, tx, &dbsqlc.SessionMessagesParams{SessionKey: key, Asked: asked, Erased: sessions.ErasedText})
	if err != nil {
		return err
	}
	g.done.Messages += int(messages)
	gone, err := g.Store.delete(ctx, tx, key, asked)
	g.done.Sessions++
	g.done.Add(sessions.Erased{
		Events: gone.Events, Summaries: gone.Summaries, Memories: gone.Memories, Blobs: gone.Blobs, Replies: gone.Replies,
	})
	return err
}

// session wipes the person from a session that others have too.
func (g *forgetting) session(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session) error {
	key := row.SessionKey
	like, err := g.likeIn(ctx, tx, key)
	if err != nil {
		return err
	}
	found, err := g.places(ctx, tx, key, func(e *dbsqlc.LogWalkRow) bool {
		return e.SenderID == g.f.Person || g.names(e.Content)
	}, like.in)
	if err != nil {
		return err
	}
	seqs, _, messages := placesOf(found)
	g.done.Messages += messages
	e := &erasure{Store: g.Store, tx: tx, row: row, seqs: seqs, who: g.who, unsaid: unsaid{repeats: g.tells(like)}}
	if len(seqs) > 0 {
		err = e.do(ctx)
	} else {
		err = e.quoted(ctx)
	}
	if err != nil {
		return err
	}
	g.done.Sessions++
	g.done.Add(e.done)
	g.done.Embeddings += e.vectors
	if err := g.facts(ctx, tx, key, like); err != nil {
		return err
	}
	return g.unname(ctx, tx, row, like)
}

// tells is what reports whether a text repeats the person or names them.
func (g *forgetting) tells(like *likeness) func(string) bool {
	return func(text string) bool {
		return like.in(text) || slices.ContainsFunc(g.who.nicks, func(n string) bool {
			return utf8.RuneCountInString(n) > 1 && strings.Contains(text, n)
		})
	}
}

// names reports whether a message of somebody is a command that names the person.
func (g *forgetting) names(content string) bool {
	if content = strings.TrimSpace(content); !strings.HasPrefix(content, "/") && !strings.HasPrefix(content, "／") {
		return false
	}
	return strings.Contains(content, string(g.f.Person)) ||
		slices.ContainsFunc(g.who.nicks, func(n string) bool { return strings.Contains(content, n) })
}

// likeIn is what repeats the person in one session: besides what does anywhere, the marks of what they said there and
// nobody else did.
func (g *forgetting) likeIn(ctx context.Context, tx pgx.Tx, key sessions.Key) (*likeness, error) {
	own, others := map[string]bool{}, map[string]bool{}
	err := g.walk(ctx, tx, key, func(e *dbsqlc.LogWalkRow) {
		switch {
		case e.Role != sessions.RoleUser || e.Content == sessions.ErasedText:
		case e.SenderID == g.f.Person:
			marksOf(e.Content, own)
		default:
			marksOf(e.Content, others)
		}
	})
	waiting, err2 := g.q.WaitingOf(ctx, tx, &dbsqlc.WaitingOfParams{SessionKey: key, Person: string(g.f.Person)})
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	for _, text := range waiting {
		marksOf(text, own)
	}
	like := g.like
	like.marks = maps.Clone(g.like.marks)
	for m := range own {
		if !others[m] {
			like.marks[m] = true
		}
	}
	return &like, nil
}

// facts deletes what memory has of the person from a session, and what it has from nobody known that repeats them. What
// others said stays. Digests keep what is not the person's.
func (g *forgetting) facts(ctx context.Context, tx pgx.Tx, key sessions.Key, like *likeness) error {
	drawn, err := g.q.MemoriesDrawn(ctx, tx, &dbsqlc.MemoriesDrawnParams{SessionKey: key, Person: string(g.f.Person)})
	if err != nil {
		return err
	}
	tells := g.tells(like)
	var ids, digests []int64
	for _, m := range drawn {
		switch {
		case m.Kind == memory.KindDigest:
			if tells(m.Content) {
				digests = append(digests, m.ID)
			}
		case m.Theirs || m.SubjectID == g.f.Person || m.SaidBy == g.f.Person || m.SaidBy == "" && like.in(m.Content):
			ids = append(ids, m.ID)
		}
	}
	if err := g.forgetFacts(ctx, tx, ids, g.f.From.Lease.Key, g.done); err != nil {
		return err
	}
	return g.digests(ctx, tx, digests, tells)
}

// digests takes the person out of digests.
func (g *forgetting) digests(ctx context.Context, tx pgx.Tx, ids []int64, tells func(string) bool) error {
	if len(ids) == 0 {
		return nil
	}
	memories, vectors, err := g.untell(ctx, tx, &dbsqlc.DigestsTellingParams{Ids: ids}, tells)
	g.done.Memories += memories
	g.done.Embeddings += vectors
	return err
}

// unname takes the person's name from what is left of a session, wipes what waits, and has whoever read it begin again.
func (g *forgetting) unname(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, like *likeness) error {
	key, who, asked := row.SessionKey, string(g.f.Person), int64(0)
	if key == g.f.From.Lease.Key && g.f.Self {
		asked = g.f.From.Event
	}
	if err := g.runs(ctx, tx, key, like); err != nil {
		return err
	}
	waiting, err := g.q.PersonWaiting(ctx, tx, &dbsqlc.PersonWaitingParams{
		SessionKey: key, Person: who, Asked: asked, Erased: sessions.ErasedText, Tokens: sessions.ErasedTokens,
	})
	if err != nil {
		return err
	}
	g.done.Events += int(waiting)
	g.done.Messages += int(waiting)
	if err := g.q.PersonUnname(ctx, tx, &dbsqlc.PersonUnnameParams{
		SessionKey: key, Person: who, Asked: asked, Erased: sessions.ErasedText,
	}); err != nil {
		return err
	}
	if err := g.q.OutboxUnname(ctx, tx, &dbsqlc.OutboxUnnameParams{
		SessionKey: key, Person: who, Nicks: append([]string{}, g.who.nicks...),
	}); err != nil {
		return err
	}
	if err := g.q.SessionTextsErase(ctx, tx, &dbsqlc.SessionTextsEraseParams{SessionKey: key, Undone: sessions.CompactUndone}); err != nil {
		return err
	}
	_, err = g.q.SessionErased(ctx, tx, &dbsqlc.SessionErasedParams{SessionKey: string(key)})
	return err
}

// runs wipes calls of the turn under way where the person's messages are in it, or that repeat them.
func (g *forgetting) runs(ctx context.Context, tx pgx.Tx, key sessions.Key, like *likeness) error {
	runs, err := g.q.ToolRunsOf(ctx, tx, &dbsqlc.ToolRunsOfParams{SessionKey: key, Person: string(g.f.Person)})
	if err != nil {
		return err
	}
	for _, r := range runs {
		if !r.Theirs && !like.in(r.Arguments) && !like.in(r.Result) {
			continue
		}
		if err := g.q.ToolRunErase(ctx, tx, &dbsqlc.ToolRunEraseParams{
			SessionKey: key, EventID: r.EventID, CallID: r.CallID, Erased: sessions.ErasedText,
		}); err != nil {
			return err
		}
	}
	return nil
}

// asking wipes the session of the turn that asks, and gives it back to that turn.
func (g *forgetting) asking(ctx context.Context, tx pgx.Tx, key sessions.Key) error {
	row, err := g.q.SessionLock(ctx, tx, key)
	if err != nil {
		return found(err)
	}
	l := g.f.From.Lease
	if orZero(row.LeaseOwner) != l.Owner || row.LeaseTerm != l.Term {
		return sessions.ErrLeaseLost
	}
	if err := g.q.AskingUnname(ctx, tx, &dbsqlc.AskingUnnameParams{SessionKey: key, Asked: g.f.From.Event, Content: memory.ForgetDone}); err != nil {
		return err
	}
	spoke := row.ConversationType == sessions.Private && g.f.Self
	if !g.alone(key, row.RobotCode, row.ConversationID, row.ConversationType, spoke) {
		if err := g.session(ctx, tx, &row); err != nil {
			return err
		}
		return g.keepAsking(ctx, tx, &row, g.f.From, g.done)
	}
	if err := g.delete(ctx, tx, key, g.f.From.Event); err != nil {
		return err
	}
	g.done.Lease.Term = row.LeaseTerm + 1
	return g.q.SessionRemake(ctx, tx, &dbsqlc.SessionRemakeParams{
		SessionKey: key, RobotCode: row.RobotCode, ConversationID: row.ConversationID, ConversationType: row.ConversationType,
		Owner: string(l.Owner), Term: g.done.Lease.Term,
	})
}

// memory deletes what memory has of the person from wherever else.
func (g *forgetting) memory(ctx context.Context, tx pgx.Tx) error {
	rows, err := g.q.MemoriesOfPerson(ctx, tx, g.theirs())
	if err != nil {
		return err
	}
	var ids, digests []int64
	for _, r := range rows {
		if r.Kind == memory.KindDigest {
			digests = append(digests, r.ID)
		} else {
			ids = append(ids, r.ID)
		}
	}
	if err := g.forgetFacts(ctx, tx, ids, g.f.From.Lease.Key, g.done); err != nil {
		return err
	}
	if err := g.digests(ctx, tx, digests, g.tells(&g.like)); err != nil {
		return err
	}
	return g.q.MemoriesUnpromote(ctx, tx, &dbsqlc.MemoriesUnpromoteParams{Person: string(g.f.Person), RobotSessions: g.robotSessions()})
}
