package erasure

import (
	"context"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/memory/text"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/index"
	"ebb/sql/vectors"
)

// A digest of this age can be summarized again, with a day left for the work.
const freshDigest = (memory.DigestDays - 1) * 24 * time.Hour

// digestReaders lists the readers of a session's digests that cover one of some events, see [Store.readersOf]: an erasure of the events
// may delete these digests.
func (s *Store) digestReaders(ctx context.Context, key sessions.Key, seqs []int64) ([]sessions.Key, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	digests, err := s.db.Q.DigestsTelling(ctx, s.db.Pool, &dbsqlc.DigestsTellingParams{SessionKey: key, Ids: []int64{}, Seqs: seqs})
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(digests))
	for i, d := range digests {
		ids[i] = d.ID
	}
	return s.readersOf(ctx, ids)
}

// trimDigests deletes recent digests, whose days are summarized again from the remaining log, and trims older ones.
func (s *Store) trimDigests(
	ctx context.Context, tx pgx.Tx, p *dbsqlc.DigestsTellingParams, repeats func(string) bool,
) (deleted, removed int, err error) {
	p.FreshSeconds = freshDigest.Seconds()
	p.Ids, p.Seqs = append([]int64{}, p.Ids...), append([]int64{}, p.Seqs...)
	digests, err := s.db.Q.DigestsTelling(ctx, tx, p)
	if err != nil {
		return 0, 0, err
	}
	var gone []int64
	var hashes [][]byte
	for _, d := range digests {
		left := ""
		if !d.Fresh {
			left = withoutRepeats(d.Content, repeats)
		}
		if left == "" {
			gone = append(gone, d.ID)
			continue
		}
		if left == d.Content {
			continue
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "digest\x00%d\x00%s", d.ID, text.Normalize(left)))
		if err := s.db.Q.DigestTrim(ctx, tx, &dbsqlc.DigestTrimParams{
			ID: d.ID, Content: left, NormHash: sum[:], Terms: index.MemoryTerms(d.Scope, d.ScopeID, left),
		}); err != nil {
			return 0, 0, err
		}
		hashes = append(hashes, vectors.Hash(d.Content))
	}
	n, err := s.eraseVectors(ctx, tx, hashes)
	if err != nil {
		return 0, 0, err
	}
	facts, removed, err := s.deleteDerived(ctx, tx, gone)
	return len(facts), removed + int(n), err
}

var (
	listItem = regexp.MustCompile(`^\s*([-*•]|\d+[.、)])\s*`)
	sentence = regexp.MustCompile(`.*?(?:[。！？!?；;]+|\.(?:\s|$)|$)\s*`)
)

// withoutRepeats is empty when only headings remain.
func withoutRepeats(text string, repeats func(string) bool) string {
	var kept []string
	hasText := false
	for line := range strings.SplitSeq(text, "\n") {
		heading := strings.HasPrefix(line, "#")
		if repeats(line) {
			if !heading && !listItem.MatchString(line) {
				line = withoutSentences(line, repeats)
			}
			if line == "" || repeats(line) {
				continue
			}
		}
		hasText = hasText || !heading && strings.TrimSpace(line) != ""
		kept = append(kept, line)
	}
	if !hasText {
		return ""
	}
	return strings.Join(kept, "\n")
}

func linesThat(text string, repeats func(string) bool) (n int) {
	for line := range strings.SplitSeq(text, "\n") {
		if repeats(line) {
			n++
		}
	}
	return n
}

func withoutSentences(line string, repeats func(string) bool) string {
	kept := slices.DeleteFunc(sentence.FindAllString(line, -1), repeats)
	return strings.TrimSpace(strings.Join(kept, ""))
}
