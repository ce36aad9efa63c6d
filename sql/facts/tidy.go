package facts

import (
	"context"
	"slices"

	"ebb/sql/dbsqlc"
)

func (s *Upkeep) tidyConsole(ctx context.Context) error {
	if err := s.db.Q.LoginsExpire(ctx, s.db.Pool); err != nil {
		return err
	}
	return inPages(func(after string) ([]string, error) {
		keys, err := s.db.Q.AuditMembers(ctx, s.db.Pool, &dbsqlc.AuditMembersParams{AfterKey: after, MaxRows: tidyPage})
		return texts(keys), err
	}, func(keys []string) error {
		spoken, err := s.db.Q.SessionsSpoken(ctx, s.db.Pool, keys)
		if gone := without(keys, texts(spoken)); err == nil && len(gone) > 0 {
			err = s.db.Q.AuditUnname(ctx, s.db.Pool, &dbsqlc.AuditUnnameParams{SessionKeys: gone})
		}
		return err
	})
}

func (s *Upkeep) tidySenderIDs(ctx context.Context) error {
	over, err := s.db.Q.SenderIDsOver(ctx, s.db.Pool, maxSenderIDs)
	if err != nil || len(over) == 0 {
		return err
	}
	kept, err := s.db.Q.PeopleKept(ctx, s.db.Pool, texts(over))
	if err != nil {
		return err
	}
	// The pair of an id under which rows are stored alone leads from the person to them.
	return s.db.Q.SenderIDsTrim(ctx, s.db.Pool, &dbsqlc.SenderIDsTrimParams{Most: maxSenderIDs, SenderIds: without(texts(over), texts(kept))})
}

// inPages works through a list in the order of its values. after is the last one of the page before.
func inPages(read func(after string) ([]string, error), do func(page []string) error) error {
	for after := ""; ; {
		page, err := read(after)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := do(page); err != nil {
			return err
		}
		after = page[len(page)-1]
	}
}

// tidyPage counts the sessions or people that are looked up together.
const tidyPage = 1000

func texts[T ~string](all []T) []string {
	list := make([]string, len(all))
	for i, one := range all {
		list[i] = string(one)
	}
	return list
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(one string) bool { return slices.Contains(some, one) })
}

func (s *Upkeep) tidyUsage(ctx context.Context) error {
	return inPages(func(after string) ([]string, error) {
		return s.db.Q.UsagePeople(ctx, s.db.Pool, &dbsqlc.UsagePeopleParams{AfterPerson: after, MaxRows: tidyPage})
	}, func(people []string) error {
		spoke, err := s.db.Q.PeopleSpoke(ctx, s.db.Pool, people)
		if gone := without(people, texts(spoke)); err == nil && len(gone) > 0 {
			err = s.db.Q.UsageUnname(ctx, s.db.Pool, &dbsqlc.UsageUnnameParams{People: gone})
		}
		return err
	})
}
