package facts

import (
	"context"
	"slices"

	"ebb/sql/dbsqlc"
)

func (s *Store) tidyConsole(ctx context.Context) error {
	if err := s.Q.LoginsExpire(ctx, s.Pool); err != nil {
		return err
	}
	return inPages(func(after string) ([]string, error) {
		keys, err := s.Q.AuditMembers(ctx, s.Pool, &dbsqlc.AuditMembersParams{AfterKey: after, MaxRows: tidyPage})
		return texts(keys), err
	}, func(keys []string) error {
		spoken, err := s.Q.SessionsSpoken(ctx, s.Pool, keys)
		if gone := without(keys, texts(spoken)); err == nil && len(gone) > 0 {
			err = s.Q.AuditUnname(ctx, s.Pool, &dbsqlc.AuditUnnameParams{SessionKeys: gone})
		}
		return err
	})
}

func (s *Store) tidySenderIDs(ctx context.Context) error {
	over, err := s.Q.SenderIDsOver(ctx, s.Pool, maxSenderIDs)
	if err != nil || len(over) == 0 {
		return err
	}
	kept, err := s.Q.PeopleKept(ctx, s.Pool, texts(over))
	if err != nil {
		return err
	}
	// The pair of an id under which rows are stored alone leads from the person to them.
	return s.Q.SenderIDsTrim(ctx, s.Pool, &dbsqlc.SenderIDsTrimParams{Most: maxSenderIDs, SenderIds: without(texts(over), texts(kept))})
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

func (s *Store) tidyUsage(ctx context.Context) error {
	return inPages(func(after string) ([]string, error) {
		return s.Q.UsagePeople(ctx, s.Pool, &dbsqlc.UsagePeopleParams{AfterPerson: after, MaxRows: tidyPage})
	}, func(people []string) error {
		spoke, err := s.Q.PeopleSpoke(ctx, s.Pool, people)
		if gone := without(people, texts(spoke)); err == nil && len(gone) > 0 {
			err = s.Q.UsageUnname(ctx, s.Pool, &dbsqlc.UsageUnnameParams{People: gone})
		}
		return err
	})
}
