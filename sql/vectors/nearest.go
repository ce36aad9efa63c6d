package vectors

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
	"ebb/sql/pg"
)

// sqlc can't generate code for types of some servers only, nor for streams.
var (
	//go:embed has.sql
	vectorHas string
	//go:embed extension.sql
	vectorExtension string
	//go:embed near.sql
	vectorNear string
	//go:embed scan.sql
	vectorScan string
)

const (
	// Without pgvector one search compares the newest events.
	maxScanned = 50_000
	// These extra candidates are compared exactly.
	sureNear = 32
)

// Near is a text by its hash, the place of its first event, and its cosine to the query.
type Near struct {
	Hash  []byte
	Seq   int64
	Score float64
}

// Comparer finds the nearest vectors.
type Comparer struct {
	db *pg.DB

	mu    sync.Mutex
	asked bool
	has   bool
}

// NewComparer asks the server at the first search.
func NewComparer(db *pg.DB) *Comparer { return &Comparer{db: db} }

// ServerCompares reports whether the server has pgvector, which it creates when it may. Otherwise this process
// compares, with the same result.
func (c *Comparer) ServerCompares(ctx context.Context) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked {
		return c.has, nil
	}
	var available bool
	if err := c.db.Pool.QueryRow(ctx, vectorHas).Scan(&c.has, &available); err != nil {
		return false, fmt.Errorf("asking for pgvector: %w", err)
	}
	if !c.has && available {
		if _, err := c.db.Pool.Exec(ctx, vectorExtension); err != nil {
			zerolog.Ctx(ctx).Info().Err(err).Msg("pgvector can't be enabled, vectors are compared without it")
		}
		if err := c.db.Pool.QueryRow(ctx, vectorHas).Scan(&c.has, &available); err != nil {
			return false, fmt.Errorf("asking for pgvector: %w", err)
		}
	}
	c.asked = true
	return c.has, nil
}

// Place is a session's events, or memories by scope and hash.
type Place struct {
	Scopes []string
	Events bool
	Hashes [][]byte
}

// Nearest finds the texts nearest to a vector of length one, the nearest first. Every cosine is above 0.
func (c *Comparer) Nearest(ctx context.Context, at Place, model string, v []float32, limit int) ([]Near, error) {
	server, err := c.ServerCompares(ctx)
	if err != nil {
		return nil, err
	}
	if !server {
		return c.nearestQuantized(ctx, at, model, v, limit)
	}
	rows, err := c.db.Pool.Query(ctx, vectorNear, at.Scopes, model, v, len(v), at.Events, at.Hashes, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []Near
	for rows.Next() {
		var n Near
		if err := rows.Scan(&n.Hash, &n.Seq, &n.Score); err != nil {
			return nil, err
		}
		found = append(found, n)
	}
	return found, rows.Err()
}

// The quantized vectors choose those that are compared exactly.
func (c *Comparer) nearestQuantized(ctx context.Context, at Place, model string, v []float32, limit int) ([]Near, error) {
	rows, err := c.db.Pool.Query(ctx, vectorScan, at.Scopes, model, len(v), at.Events, at.Hashes, maxScanned)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []Near
	most := 2*limit + sureNear
	for rows.Next() {
		var n Near
		var short []byte
		if err := rows.Scan(&n.Hash, &n.Seq, &short); err != nil {
			return nil, err
		}
		if n.Score = approxCosine(short, v); n.Score <= 0 {
			continue
		}
		if found = append(found, n); len(found) >= 4*most {
			found = firstNear(found, most)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return c.compareExactly(ctx, at, model, v, firstNear(found, most), limit)
}

func (c *Comparer) compareExactly(ctx context.Context, at Place, model string, v []float32, about []Near, limit int) ([]Near, error) {
	if len(about) == 0 {
		return nil, nil
	}
	p := &dbsqlc.EmbeddingsExactParams{ScopeKeys: at.Scopes, Model: model}
	for _, n := range about {
		p.Hashes = append(p.Hashes, n.Hash)
	}
	rows, err := c.db.Q.EmbeddingsExact(ctx, c.db.Pool, p)
	if err != nil {
		return nil, err
	}
	found := make([]Near, 0, len(rows))
	for _, r := range rows {
		if len(r.Vec) == len(v) {
			found = append(found, Near{Hash: r.ContentHash, Seq: r.Seq, Score: Cosine(r.Vec, v)})
		}
	}
	return firstNear(found, limit), nil
}

func firstNear(found []Near, limit int) []Near {
	slices.SortFunc(found, func(a, b Near) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Seq, a.Seq), slices.Compare(a.Hash, b.Hash))
	})
	return found[:min(limit, len(found))]
}

// Cosine is the cosine of two vectors of length one.
func Cosine(u, v []float32) float64 {
	sum := 0.0
	for i := range u {
		sum += float64(u[i]) * float64(v[i])
	}
	return sum
}

// The scale has four bytes, and each multiple of it one byte.
func quantize(v []float32) []byte {
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

// Both vectors have the same length.
func approxCosine(short []byte, v []float32) float64 {
	step, sum := math.Float32frombits(binary.BigEndian.Uint32(short)), float32(0)
	for i, b := range short[4:] {
		sum += v[i] * float32(int(b^0x80)-0x80)
	}
	return float64(step * sum)
}
