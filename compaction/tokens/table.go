package tokens

import (
	"encoding/base64"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// table has the byte pairs of o200k_base by rank. Its values have no pointers: maps of 200,000 strings were most of the heap, and each
// collection of garbage went through them.
type table struct {
	seed  maphash.Seed
	text  string          // all tokens, in the order of their ranks
	ends  []uint32        // by rank
	slots []uint32        // by hash: the rank in the low bits, further bits of the hash above it; none: free
	pairs [1 << 16]uint32 // ranks of two bytes, which begin each word's merges
}

const (
	tableFile = "o200k_base.tiktoken"
	tableBits = 19 // twice as many slots as tokens, and more
	rankBits  = 18
	rankMask  = 1<<rankBits - 1
	none      = math.MaxUint32
)

var errTable = errors.New("table of tokens is not as expected")

// loadTable takes the table from the program instead of the network.
var loadTable = sync.OnceValues(func() (*table, error) {
	file, err := assets.Assets.ReadFile(tableFile)
	if err != nil {
		return nil, err
	}
	t := &table{seed: maphash.MakeSeed(), slots: make([]uint32, 1<<tableBits)}
	for i := range t.slots {
		t.slots[i] = none
	}
	text := make([]byte, 0, len(file)/2)
	for line := range strings.Lines(string(file)) {
		token, rank, _ := strings.Cut(strings.TrimSpace(line), " ")
		if rank != strconv.Itoa(len(t.ends)) {
			return nil, fmt.Errorf("line %d of %s has rank %q: %w", len(t.ends)+1, tableFile, rank, errTable)
		}
		if text, err = base64.StdEncoding.AppendDecode(text, []byte(token)); err != nil {
			return nil, err
		}
		t.ends = append(t.ends, uint32(len(text))) //nolint:gosec // some MB
	}
	if len(t.ends) < 256 || len(t.ends) >= rankMask {
		return nil, errTable
	}
	t.text = string(text)
	for rank := range uint32(len(t.ends)) { //nolint:gosec // below 2^18
		slot, tag := t.slot(t.token(rank))
		t.slots[slot] = tag | rank
	}
	for i := range t.pairs {
		t.pairs[i] = t.rank(string([]byte{byte(i >> 8), byte(i)}))
	}
	return t, nil
})

func (t *table) token(rank uint32) string {
	start := uint32(0)
	if rank > 0 {
		start = t.ends[rank-1]
	}
	return t.text[start:t.ends[rank]]
}

// slot is the place of a token, or the free one for it, and the bits above its rank.
func (t *table) slot(token string) (at int, tag uint32) {
	hash := maphash.String(t.seed, token)
	tag = uint32(hash) &^ rankMask //nolint:gosec // some of its bits
	for at = int(hash >> (64 - tableBits)); ; at = (at + 1) % len(t.slots) {
		slot := t.slots[at]
		if slot == none || slot&^rankMask == tag && t.token(slot&rankMask) == token {
			return at, tag
		}
	}
}

// rank is none for a text that is no token.
func (t *table) rank(text string) uint32 {
	at, _ := t.slot(text)
	if t.slots[at] == none {
		return none
	}
	return t.slots[at] & rankMask
}

// count is the number of tokens of a word: neighbours are merged, those of the lowest rank first, until no two of them are a token.
func (t *table) count(word string) int {
	if len(word) == 1 || t.rank(word) != none {
		return 1
	}
	var room [maxWord + 1]part
	parts := room[:len(word)]
	for i := range parts {
		parts[i] = part{start: i, pair: none}
		if i+2 <= len(word) {
			parts[i].pair = t.pairs[int(word[i])<<8|int(word[i+1])]
		}
	}
	end := func(i int) int {
		if i+1 < len(parts) {
			return parts[i+1].start
		}
		return len(word)
	}
	pair := func(i int) uint32 {
		if i+1 >= len(parts) {
			return none
		}
		return t.rank(word[parts[i].start:end(i+1)])
	}
	for {
		best := 0
		for i := range parts {
			if parts[i].pair < parts[best].pair {
				best = i
			}
		}
		if parts[best].pair == none {
			return len(parts)
		}
		parts = append(parts[:best+1], parts[best+2:]...)
		parts[best].pair = pair(best)
		if best > 0 {
			parts[best-1].pair = pair(best - 1)
		}
	}
}

// part is a token so far.
type part struct {
	start int
	pair  uint32 // the rank that it has together with its right neighbour
}
