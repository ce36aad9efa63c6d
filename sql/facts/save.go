package facts

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/memory/reconcile"
	"ebb/memory/text"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/index"
	"ebb/sql/pg"
)

// maxCompared bounds a scope's newest memories, without those that have a draft's key or words.
const maxCompared = 1000

type keeper struct {
	db *pg.DB

	tx         pgx.Tx
	source     sessions.Key
	start, end int64 // source range of drafts without source events
	turn       int64 // that the drafts are from, where they have no range yet
	// strict refuses drafts that replace a fact missing in their scope. A flush stores these: no caller could correct
	// them.
	strict  bool
	robot   sessions.RobotCode // owner of the team and the people
	ledgers map[place]*reconcile.Ledger
	receipt memory.Receipt
}

type place struct {
	scope memory.Scope
	id    string
}

// keep only marks a known fact as said again. A corrected one leaves force.
func (k *keeper) keep(ctx context.Context, drafts []memory.Draft) (memory.Receipt, error) {
	if len(drafts) == 0 {
		return k.receipt, nil
	}
	drafts = slices.Clone(drafts)
	for i := range drafts {
		d := &drafts[i]
		d.ScopeID, d.Content, d.Key = pg.Clean(d.ScopeID), pg.Clean(d.Content), text.NormalizeKey(pg.Clean(d.Key))
		d.Kind, d.SubjectID = memory.Kind(pg.Clean(string(d.Kind))), sessions.UserID(pg.Clean(string(d.SubjectID)))
		d.SaidBy, d.SourceGroup = sessions.UserID(pg.Clean(string(d.SaidBy))), pg.Clean(d.SourceGroup)
	}
	if err := k.read(ctx, drafts); err != nil {
		return memory.Receipt{}, err
	}
	for _, d := range drafts {
		if err := k.saveDraft(ctx, d); err != nil {
			return memory.Receipt{}, err
		}
	}
	return k.receipt, nil
}

// read fetches in one statement what may concern the drafts: rows with the same text, the same key or a named id, in all their
// scopes.
func (k *keeper) read(ctx context.Context, drafts []memory.Draft) error {
	// A nil slice would be NULL, which equals nothing. That suits all but places, which is never empty.
	p := &dbsqlc.MemoriesKnownParams{MaxRows: maxCompared, RobotSessions: pg.SessionPrefix(k.robot), SourceGroups: []string{}}
	k.ledgers = map[place]*reconcile.Ledger{}
	open := func(at place) {
		if k.ledgers[at] == nil {
			k.ledgers[at] = new(reconcile.Ledger)
			p.Scopes, p.ScopeIds = append(p.Scopes, string(at.scope)), append(p.ScopeIds, at.id)
		}
	}
	for _, d := range drafts {
		open(place{d.Scope, d.ScopeID})
		if k.isShared(d) {
			open(k.teamPlace())
			p.SourceGroups = append(p.SourceGroups, d.SourceGroup)
		}
		p.Hashes = append(p.Hashes, Hash(d, k.robot))
		if d.SubjectID != "" { // the same text may be known without its subject
			d.SubjectID = ""
			p.Hashes = append(p.Hashes, Hash(d, k.robot))
		}
		if d.Key != "" {
			p.Keys = append(p.Keys, d.Key)
		}
		if d.Replaces != 0 {
			p.Ids = append(p.Ids, d.Replaces)
		}
	}
	rows, err := k.db.Q.MemoriesKnown(ctx, k.tx, p)
	if err != nil {
		return err
	}
	for _, r := range rows {
		k.ledgers[place{r.Scope, r.ScopeID}].Add(memory.Memory{
			ID: r.ID, Scope: r.Scope, ScopeID: r.ScopeID, Kind: r.Kind, Content: r.Content, Key: r.FactKey, SubjectID: r.SubjectID,
			SaidAt: pg.OrZero(r.SaidAt), SourceGroup: r.SourceGroup, SupersededBy: pg.OrZero(r.SupersededBy), CreatedAt: r.CreatedAt,
		})
	}
	return nil
}

// A group does not learn its fact again after a promotion to the team.
func (k *keeper) isShared(d memory.Draft) bool {
	return k.robot != "" && (d.Scope == memory.ScopeGroup || d.Scope == memory.ScopeSession)
}

func (k *keeper) teamPlace() place { return place{memory.ScopeTeam, string(k.robot)} }

// saveDraft stores a draft, or notes that it is known. A group's draft is compared with the team's facts too, since a promoted fact may be
// repeated or corrected in its group.
func (k *keeper) saveDraft(ctx context.Context, d memory.Draft) error {
	l, team := k.ledgers[place{d.Scope, d.ScopeID}], new(reconcile.Ledger)
	inTeam := d
	if k.isShared(d) {
		inTeam.Scope, inTeam.ScopeID = k.teamPlace().scope, k.teamPlace().id
		team = k.ledgers[k.teamPlace()]
	}
	corrects := d.Scope == memory.ScopeGroup && k.isShared(d) // the group's own row that the team's came from
	if k.strict && !l.Names(d) && (!corrects || !team.Names(inTeam)) {
		k.receipt.Unknown = append(k.receipt.Unknown, d.Replaces)
		return nil
	}
	v := l.Decide(d)
	if v.Same != 0 {
		return k.seen(ctx, d, v.Same)
	}
	known := team.Decide(inTeam)
	if known.Same != 0 && len(v.Supersedes) == 0 && v.By == 0 {
		return k.seen(ctx, inTeam, known.Same)
	}
	if !corrects {
		known = reconcile.Decision{}
	}
	by := cmp.Or(v.By, known.By)
	id, stored, err := k.insert(ctx, d, by)
	if err != nil || !stored {
		return err
	}
	l.Add(memory.Memory{
		ID: id, Scope: d.Scope, ScopeID: d.ScopeID, Kind: d.Kind, Content: d.Content, Key: d.Key, SubjectID: d.SubjectID,
		SaidAt: d.SaidAt, SourceGroup: d.SourceGroup, SupersededBy: by,
	})
	if len(v.Supersedes)+len(known.Supersedes) == 0 {
		return nil
	}
	gone, err := k.db.Q.MemoriesSupersede(ctx, k.tx, &dbsqlc.MemoriesSupersedeParams{
		By: &id, Scope: d.Scope, ScopeID: d.ScopeID, Ids: v.Supersedes, Successors: l.Successors(v.Supersedes), TeamIds: known.Supersedes,
	})
	team.Supersede(id, known.Supersedes)
	l.Supersede(id, gone)
	if k.strict && d.Scope == memory.ScopeUser { // a group must not learn of a private correction
		gone = l.Shows(d, gone)
	}
	k.receipt.Superseded = append(k.receipt.Superseded, gone...)
	return err
}

func (k *keeper) seen(ctx context.Context, d memory.Draft, id int64) error {
	if !slices.Contains(k.receipt.Saved, id) && !slices.Contains(k.receipt.Duplicate, id) {
		k.receipt.Duplicate = append(k.receipt.Duplicate, id)
	}
	said := d.SaidAt
	if said.IsZero() {
		said = time.Now()
	}
	return k.db.Q.MemorySeen(ctx, k.tx, &dbsqlc.MemorySeenParams{
		Scope: d.Scope, ScopeID: d.ScopeID, ID: id, SaidAt: said, ExpiresAt: pg.OrNil(d.ExpiresAt),
	})
}

// The row by, when set, corrected the draft already. When another session has just stored the same text, that
// row becomes the receipt.
func (k *keeper) insert(ctx context.Context, d memory.Draft, by int64) (id int64, stored bool, err error) {
	start, end := d.StartSeq, d.EndSeq
	if start == 0 {
		start, end = k.start, k.end
	}
	turn := k.turn
	if start != 0 {
		turn = 0
	}
	hash := Hash(d, k.robot)
	id, err = k.db.Q.MemoryInsert(ctx, k.tx, &dbsqlc.MemoryInsertParams{
		Scope: d.Scope, ScopeID: d.ScopeID, Kind: d.Kind, Content: d.Content, NormHash: hash, FactKey: d.Key,
		SubjectID: d.SubjectID, SaidBy: d.SaidBy, SaidAt: pg.OrNil(d.SaidAt), SourceGroup: d.SourceGroup, SourceSession: k.source,
		StartSeq: start, EndSeq: max(start, end), Turn: pg.OrNil(turn), ExpiresAt: pg.OrNil(d.ExpiresAt), SupersededBy: pg.OrNil(by),
		Terms: index.MemoryTerms(d.Scope, d.ScopeID, d.Content),
	})
	switch {
	case err == nil:
		k.receipt.Saved, k.receipt.New = append(k.receipt.Saved, id), append(k.receipt.New, d)
		return id, true, nil
	case !errors.Is(err, pgx.ErrNoRows):
		return 0, false, err
	}
	if id, err = k.db.Q.MemoryByHash(ctx, k.tx, &dbsqlc.MemoryByHashParams{Scope: d.Scope, ScopeID: d.ScopeID, NormHash: hash}); err != nil {
		return 0, false, err
	}
	return id, false, k.seen(ctx, d, id)
}
