package facts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
	"ebb/sql/pg"
)

// Rights has what people may ask about the data kept of them.
type Rights struct {
	db         *pg.DB
	identities *identity.Store
	facts      *Store
}

// NewRights returns the rights of a database's people.
func NewRights(db *pg.DB, identities *identity.Store, facts *Store) *Rights {
	return &Rights{db, identities, facts}
}

// Known implements memory.Rights.
func (s *Rights) Known(ctx context.Context, a memory.Asker, skip, limit int) ([]memory.Known, int, error) {
	list, total, err := s.known(ctx, a, 0, skip, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("listing the memories: %w", err)
	}
	return list, total, nil
}

// KnownByID implements memory.Rights.
func (s *Rights) KnownByID(ctx context.Context, a memory.Asker, id int64) (memory.Known, error) {
	list, _, err := s.known(ctx, a, id, 0, 1)
	if err == nil && (id <= 0 || len(list) == 0) {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return memory.Known{}, fmt.Errorf("reading memory %d: %w", id, err)
	}
	return list[0], nil
}

func (s *Rights) known(ctx context.Context, a memory.Asker, id int64, skip, limit int) ([]memory.Known, int, error) {
	r := a.Reader
	ids, err := s.identities.IDs(ctx, s.db.Pool, r.Robot, a.Person)
	if err != nil {
		return nil, 0, err
	}
	memories, total, err := findMemories(ctx, s.db, &dbsqlc.MemoriesFindParams{
		ID: id, Asking: true, Asker: ids, Private: r.Private, TeamID: string(r.Robot),
		GroupID: memory.GroupID(r.Robot, r.Conversation), SessionKey: string(r.Key), Admin: a.Admin, RobotSessions: pg.SessionPrefix(r.Robot),
		Skip: pg.Clamp(skip), MaxRows: pg.Clamp(limit),
	})
	list := make([]memory.Known, 0, len(memories))
	for _, m := range memories {
		own := slices.Contains(ids, string(m.SubjectID)) || slices.Contains(ids, string(m.SaidBy)) || m.Scope == memory.ScopeUser && slices.Contains(ids, m.ScopeID)
		list = append(list, memory.Known{Memory: m, Own: own})
	}
	return list, total, err
}

func findMemories(ctx context.Context, db *pg.DB, p *dbsqlc.MemoriesFindParams) ([]memory.Memory, int, error) {
	p.People, p.Asker = append([]string{}, p.People...), append([]string{}, p.Asker...)
	rows, err := db.Q.MemoriesFind(ctx, db.Pool, p)
	if err != nil {
		return nil, 0, err
	}
	list, total := make([]memory.Memory, 0, len(rows)), 0
	for _, r := range rows {
		total = int(r.Total)
		list = append(list, convert.Memory(&dbsqlc.MemoriesReadableRow{
			ID: r.ID, Scope: r.Scope, ScopeID: r.ScopeID, Kind: r.Kind, Content: r.Content, SubjectID: r.SubjectID,
			SourceSession: r.SourceSession, StartSeq: r.StartSeq, EndSeq: r.EndSeq, SupersededBy: r.SupersededBy,
			CreatedAt: r.CreatedAt, FactKey: r.FactKey, SaidBy: r.SaidBy, SaidAt: r.SaidAt, SourceGroup: r.SourceGroup,
			ExpiresAt: r.ExpiresAt, LastSeenAt: r.LastSeenAt, Seen: r.Seen, SupersededAt: r.SupersededAt, PromotedBy: r.PromotedBy, Withheld: r.Withheld,
		}))
	}
	return list, total, nil
}

// MemoryFilter narrows [Store.Memories]. An empty field matches all.
type MemoryFilter struct {
	Scope   memory.Scope
	Session sessions.Key    // the source's
	Person  sessions.UserID // its subject or author
	Every   bool            // also superseded and expired ones
}

// Memories lists at most limit memories for an administrator, newest first, and counts all that match.
func (s *Store) Memories(ctx context.Context, f MemoryFilter, limit int) ([]memory.Memory, int, error) {
	ids, err := s.identities.IDs(ctx, s.db.Pool, "", f.Person)
	if err != nil {
		return nil, 0, fmt.Errorf("listing memories: %w", err)
	}
	list, total, err := findMemories(ctx, s.db, &dbsqlc.MemoriesFindParams{
		InScope: string(f.Scope), InSession: string(f.Session), People: ids, Every: f.Every,
		MaxRows: pg.Clamp(limit),
	})
	if err == nil {
		err = s.identities.Name(ctx, list, func(m memory.Memory) sessions.Key { return m.SourceSession })
	}
	if err != nil {
		return nil, 0, fmt.Errorf("listing memories: %w", err)
	}
	return list, total, nil
}

// MemoryByID returns a memory for an administrator, whatever its readers, and all values of the fact, the oldest
// first. It returns sessions.ErrNotFound for an unknown id.
func (s *Store) MemoryByID(ctx context.Context, id int64) (m memory.Memory, chain []memory.Memory, err error) {
	ids, err := s.db.Q.MemoryChain(ctx, s.db.Pool, id)
	if err == nil && len(ids) == 0 {
		err = sessions.ErrNotFound
	}
	for _, v := range ids {
		if err != nil {
			break
		}
		var one []memory.Memory
		one, _, err = findMemories(ctx, s.db, &dbsqlc.MemoriesFindParams{ID: v, Every: true, MaxRows: 1})
		chain = append(chain, one...)
	}
	if err == nil {
		err = s.identities.Name(ctx, chain, func(m memory.Memory) sessions.Key { return m.SourceSession })
	}
	for _, one := range chain {
		if one.ID == id {
			m = one
		}
	}
	if err != nil {
		return m, nil, fmt.Errorf("reading memory %d: %w", id, err)
	}
	return m, chain, nil
}

// Receipt is the flush that saved a memory.
type Receipt struct {
	ID        int64
	Trigger   memory.FlushTrigger
	Model     string
	From      int64 // the events (From, Through]
	Through   int64
	CreatedAt time.Time
}

// ReceiptOf finds the first flush that saved a memory or found it again. It returns sessions.ErrNotFound for none, as
// for a memory that a turn saved.
func (s *Store) ReceiptOf(ctx context.Context, m memory.Memory) (Receipt, error) {
	r, err := s.db.Q.FlushOfMemory(ctx, s.db.Pool, &dbsqlc.FlushOfMemoryParams{SessionKey: m.SourceSession, MemoryID: m.ID})
	if err != nil {
		return Receipt{}, fmt.Errorf("reading the receipt of memory %d: %w", m.ID, pg.AsNotFound(err))
	}
	return Receipt{ID: r.ID, Trigger: memory.FlushTrigger(r.Trigger), Model: r.Model, From: r.FromSeq, Through: r.ThroughSeq, CreatedAt: r.CreatedAt}, nil
}

// Promote implements memory.Rights.
func (s *Rights) Promote(ctx context.Context, id int64, by sessions.UserID) (memory.Memory, error) {
	var promoted int64
	source, err := s.db.Q.MemorySource(ctx, s.db.Pool, id)
	if err == nil {
		err = s.db.WithSession(ctx, source.SourceSession, func(tx pgx.Tx, row *dbsqlc.Session) (err error) {
			promoted, err = s.promote(ctx, tx, row.RobotCode, id, by)
			return err
		})
	}
	if err != nil {
		return memory.Memory{}, fmt.Errorf("promoting memory %d: %w", id, pg.AsNotFound(err))
	}
	m, _, err := s.facts.MemoryByID(ctx, promoted)
	return m, err
}

// promote corrects the team's memories from that group, as the group did. A fact that the team has already, in the same
// or nearly the same words, is reused.
func (s *Rights) promote(ctx context.Context, tx pgx.Tx, robot sessions.RobotCode, id int64, by sessions.UserID) (int64, error) {
	m, err := s.db.Q.MemoryPromotable(ctx, tx, id)
	if err != nil {
		return 0, err
	}
	k := keeper{db: s.db, tx: tx, source: m.SourceSession, robot: robot, turn: pg.OrZero(m.Turn)}
	d := memory.Draft{
		Scope: k.teamPlace().scope, ScopeID: k.teamPlace().id, Kind: m.Kind, Content: m.Content, Key: m.FactKey, SubjectID: m.SubjectID,
		SaidBy: m.SaidBy, SaidAt: pg.OrZero(m.SaidAt), SourceGroup: m.SourceGroup, StartSeq: m.StartSeq, EndSeq: m.EndSeq,
		ExpiresAt: pg.OrZero(m.ExpiresAt),
	}
	if err := k.read(ctx, []memory.Draft{d}); err != nil {
		return 0, err
	}
	now := d
	now.SaidAt = time.Time{} // the promoter says so now
	v := k.ledgers[k.teamPlace()].Decide(now)
	promoted, stored := v.Same, false
	if promoted == 0 {
		gone, err := s.db.Q.MemoriesPromotedBefore(ctx, tx, &dbsqlc.MemoriesPromotedBeforeParams{
			GroupID: m.ScopeID, TeamID: k.teamPlace().id, ID: id,
		})
		if err != nil {
			return 0, err
		}
		if promoted, stored, err = k.insert(ctx, d, 0); err != nil {
			return 0, err
		}
		if _, err := s.db.Q.MemoriesSupersede(ctx, tx, &dbsqlc.MemoriesSupersedeParams{
			By: &promoted, Scope: d.Scope, ScopeID: d.ScopeID, Ids: append(gone, v.Supersedes...),
		}); err != nil {
			return 0, err
		}
	}
	return promoted, s.db.Q.MemoryPromoted(ctx, tx, &dbsqlc.MemoryPromotedParams{
		Promoted: promoted, New: stored, PromotedBy: string(by), GroupID: m.ScopeID, TeamID: d.ScopeID, ID: id,
	})
}

// People implements memory.Rights.
func (s *Rights) People(ctx context.Context, robot sessions.RobotCode, group sessions.Key, name string) ([]memory.Person, error) {
	rows, err := s.db.Q.PeopleNamed(ctx, s.db.Pool, &dbsqlc.PeopleNamedParams{
		RobotSessions: pg.RobotSessions(robot), GroupKey: string(group), Name: pg.Clean(name),
	})
	if err != nil {
		return nil, fmt.Errorf("looking for a person: %w", err)
	}
	people := make([]memory.Person, len(rows))
	ids := make([]sessions.UserID, len(rows))
	for i, r := range rows {
		people[i], ids[i] = memory.Person{ID: r.Person, Last: r.SeenAt}, r.Person
	}
	last, err := s.identities.LastSeen(ctx, robot, group, ids)
	if err != nil {
		return nil, fmt.Errorf("looking for a person: %w", err)
	}
	for i := range people {
		if seen, spoke := last[people[i].ID]; spoke { // since then perhaps under another name
			people[i].Nick, people[i].Last = seen.Nick, seen.At
		}
	}
	slices.SortStableFunc(people, func(a, b memory.Person) int { return b.Last.Compare(a.Last) })
	if people, err = s.identities.Merge(ctx, robot, people); err != nil {
		return nil, fmt.Errorf("looking for a person: %w", err)
	}
	return people, nil
}

// FactsOf implements memory.Rights.
func (s *Rights) FactsOf(
	ctx context.Context, robot sessions.RobotCode, person sessions.UserID, after int64, limit int,
) ([]memory.Memory, error) {
	if person == "" {
		return nil, nil
	}
	ids, err := s.identities.IDs(ctx, s.db.Pool, robot, person)
	if err != nil {
		return nil, fmt.Errorf("listing the memories of a person: %w", err)
	}
	list, _, err := findMemories(ctx, s.db, &dbsqlc.MemoriesFindParams{
		People: ids, AfterID: after, Every: true, OldestFirst: true, RobotSessions: pg.RobotSessions(robot), MaxRows: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing the memories of a person: %w", err)
	}
	return list, nil
}

// MessagesOf implements memory.Rights.
func (s *Rights) MessagesOf(
	ctx context.Context, robot sessions.RobotCode, person sessions.UserID, after int64, limit int,
) ([]memory.PersonMessage, error) {
	if person == "" {
		return nil, nil
	}
	ids, err := s.identities.IDs(ctx, s.db.Pool, robot, person)
	if err != nil {
		return nil, fmt.Errorf("listing the messages of a person: %w", err)
	}
	spoken, _, err := s.identities.Logs(ctx, robot, ids)
	if err != nil {
		return nil, fmt.Errorf("listing the messages of a person: %w", err)
	}
	var list []memory.PersonMessage
	for _, key := range spoken {
		rows, err := s.db.Q.PersonMessages(ctx, s.db.Pool, &dbsqlc.PersonMessagesParams{
			SessionKey: sessions.Key(key), People: ids, AfterID: after, Erased: sessions.ErasedText, MaxRows: pg.Clamp(limit),
		})
		if err != nil {
			return nil, fmt.Errorf("listing the messages of a person: %w", err)
		}
		for _, r := range rows {
			e, err := convert.Event(sessions.Event{
				Key: r.SessionKey, ID: r.ID, Seq: pg.OrZero(r.Seq), Role: sessions.RoleUser, Content: r.Content, SenderID: r.SenderID,
				SenderNick: r.SenderNick, MsgID: pg.OrZero(r.MsgID), State: r.State, CreatedAt: r.CreatedAt,
			}, convert.EventJSON{Message: r.Message})
			if err != nil {
				return nil, err
			}
			list = append(list, memory.PersonMessage{Event: e, Title: r.Title, Private: r.ConversationType != sessions.Group})
		}
	}
	slices.SortFunc(list, func(a, b memory.PersonMessage) int { return cmp.Compare(a.Event.ID, b.Event.ID) })
	return list[:min(len(list), limit)], nil
}

// RecordsOf implements memory.Rights.
func (s *Rights) RecordsOf(ctx context.Context, robot sessions.RobotCode, person sessions.UserID) ([]memory.Record, error) {
	if person == "" {
		return nil, nil
	}
	ids, err := s.identities.IDs(ctx, s.db.Pool, robot, person)
	if err != nil {
		return nil, fmt.Errorf("listing the records of a person: %w", err)
	}
	rows, err := s.db.Q.PersonRecords(ctx, s.db.Pool, &dbsqlc.PersonRecordsParams{People: ids, Robot: string(robot), RobotSessions: pg.RobotSessions(robot)})
	if err != nil {
		return nil, fmt.Errorf("listing the records of a person: %w", err)
	}
	list := make([]memory.Record, len(rows))
	for i, r := range rows {
		list[i] = memory.Record{
			Kind: memory.RecordKind(r.Kind), At: r.At, Text: r.Name, Rows: int(r.Rows),
			Prompt: int(r.PromptTokens), Cached: int(r.CachedTokens), Completion: int(r.CompletionTokens), Cost: r.Cost,
			DueAt: pg.OrZero(r.DueAt), Spec: r.Spec, Way: sessions.ScheduleKind(r.Way),
		}
	}
	return list, nil
}
