package sql

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"ebb/sql/dbsqlc"
)

// What names a type that only some servers have, or is read as a stream: no query that sqlc could make code of.
var (
	//go:embed vectors/has.sql
	vectorHas string
	//go:embed vectors/extension.sql
	vectorExtension string
	//go:embed vectors/near.sql
	vectorNear string
	//go:embed vectors/scan.sql
	vectorScan string
)

const (
	// maxScanned is how much of a log, in events from its end, one search looks at where the server cannot compare vectors.
	maxScanned = 50_000
	// sureNear is how many more than asked for are compared exactly.
	sureNear = 32
)

// near is a text by its hash, the place of the first event that says it, and its cosine to what was looked for.
type near struct {
	hash  []byte
	seq   int64
	score float64
}

// comparer says who compares vectors: the server, where it has pgvector, or we. It asks the server once.
type comparer struct {
	mu    sync.Mutex
	asked bool
	has   bool
}

// ServerCompares reports whether the server compares vectors, by pgvector. Where it could and does not yet, its extension
// is made, if we may; else the vectors of a scope are compared here, with the same outcome.
func (s *vectorStore) ServerCompares(ctx context.Context) (bool, error) {
	c := &s.comparer
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked {
		return c.has, nil
	}
	var available bool
	if err := s.pool.QueryRow(ctx, vectorHas).Scan(&c.has, &available); err != nil {
		return false, fmt.Errorf("asking for pgvector: %w", err)
	}
	if !c.has && available {
		if _, err := s.pool.Exec(ctx, vectorExtension); err != nil {
			zerolog.Ctx(ctx).Info().Err(err).Msg("pgvector can't be enabled, vectors are compared without it")
		}
		if err := s.pool.QueryRow(ctx, vectorHas).Scan(&c.has, &available); err != nil {
			return false, fmt.Errorf("asking for pgvector: %w", err)
		}
	}
	c.asked = true
	return c.has, nil
}

// vectorsAt is where nearest looks: at the events of a session, or at memories by scope and hash.
type vectorsAt struct {
	scopes []string
	events bool
	hashes [][]byte
}

// nearest finds the texts at a place that are nearest to a vector of length one, the nearest first. None is as far as a
// right angle.
func (s *vectorStore) nearest(ctx context.Context, at vectorsAt, model string, v []float32, limit int) ([]near, error) {
	server, err := s.ServerCompares(ctx)
	if err != nil {
		return nil, err
	}
	if !server {
		return s.scan(ctx, at, model, v, limit)
	}
	rows, err := s.pool.Query(ctx, vectorNear, at.scopes, model, v, len(v), at.events, at.hashes, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []near
	for rows.Next() {
		var n near
		if err := rows.Scan(&n.hash, &n.seq, &n.score); err != nil {
			return nil, err
		}
		found = append(found, n)
	}
	return found, rows.Err()
}

// scan compares vectors in short as they come from the server, and then the nearest of them exactly.
func (s *vectorStore) scan(ctx context.Context, at vectorsAt, model string, v []float32, limit int) ([]near, error) {
	rows, err := s.pool.Query(ctx, vectorScan, at.scopes, model, len(v), at.events, at.hashes, maxScanned)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []near
	most := 2*limit + sureNear
	for rows.Next() {
		var n near
		var short []byte
		if err := rows.Scan(&n.hash, &n.seq, &short); err != nil {
			return nil, err
		}
		if n.score = about(short, v); n.score <= 0 {
			continue
		}
		if found = append(found, n); len(found) >= 4*most {
			found = firstNear(found, most)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return s.exact(ctx, at, model, v, firstNear(found, most), limit)
}

// exact compares texts that are near by their vectors in short.
func (s *vectorStore) exact(ctx context.Context, at vectorsAt, model string, v []float32, about []near, limit int) ([]near, error) {
	if len(about) == 0 {
		return nil, nil
	}
	p := &dbsqlc.EmbeddingsExactParams{ScopeKeys: at.scopes, Model: model}
	for _, n := range about {
		p.Hashes = append(p.Hashes, n.hash)
	}
	rows, err := s.q.EmbeddingsExact(ctx, s.pool, p)
	if err != nil {
		return nil, err
	}
	found := make([]near, 0, len(rows))
	for _, r := range rows {
		if len(r.Vec) == len(v) {
			found = append(found, near{hash: r.ContentHash, seq: r.Seq, score: cosine(r.Vec, v)})
		}
	}
	return firstNear(found, limit), nil
}

func firstNear(found []near, limit int) []near {
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.seq, a.seq), slices.Compare(a.hash, b.hash))
	})
	return found[:min(limit, len(found))]
}

// cosine is that of two vectors of length one.
func cosine(u, v []float32) float64 {
	sum := 0.0
	for i := range u {
		sum += float64(u[i]) * float64(v[i])
	}
	return sum
}

// small is a vector in short: what its numbers are multiples of, as four bytes, and how often, a byte each.
func small(v []float32) []byte {
	top := float32(0)
	for _, f := range v {
		top = max(top, f, -f)
	}
	step := top / math.MaxInt8
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(v)), math.Float32bits(step))
	for _, f := range v {
		times := 0.0
		if step > 0 {
			times = math.Round(float64(f / step))
		}
		b = append(b, byte(int(times)&0xff)) // two's complement
	}
	return b
}

// about is the cosine of a vector in short and another of the same length, nearly.
func about(short []byte, v []float32) float64 {
	step, sum := math.Float32frombits(binary.BigEndian.Uint32(short)), float32(0)
	for i, b := range short[4:] {
		sum += v[i] * float32(int(b^0x80)-0x80)
	}
	return float64(step * sum)
}
