package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"ebb/memory/rank"
)

// A segment is the inverted index of some texts of a session: for each term the places of the texts that have it. It is stored as
// blocks of neighbouring hashes, so that a search reads one block for each term. Segments double in size when they are joined;
// each posting is written a few times at most, and a session has few segments.
type segment struct {
	first int64  // the first size is at this place
	sizes []byte // by place: the text's length as a class; 0: no text
	lists map[uint32][]int64
}

const (
	blockBytes = 1500   // size of a block, on average; its row stays on one page
	maxTexts   = 16_384 // bound of a segment that takes others in
	maxBits    = 20
)

// text is an event with its terms.
type text struct {
	place int64
	terms []byte // see packTerms
}

func newSegment(texts []text) *segment {
	s := &segment{lists: make(map[uint32][]int64)}
	for _, t := range texts {
		hashes := rank.TermHashes(unpackTerms(t.terms))
		for _, h := range hashes {
			s.lists[h] = append(s.lists[h], t.place)
		}
		s.setSize(t.place, sizeClass(len(t.terms)/termBytes))
	}
	for _, list := range s.lists {
		slices.Sort(list)
	}
	return s
}

func (s *segment) texts() int {
	n := 0
	for _, size := range s.sizes {
		if size > 0 {
			n++
		}
	}
	return n
}

func (s *segment) setSize(place int64, class byte) {
	if len(s.sizes) == 0 {
		s.first = place
	}
	if place < s.first {
		s.sizes = append(make([]byte, s.first-place), s.sizes...)
		s.first = place
	}
	if missing := place - s.first + 1 - int64(len(s.sizes)); missing > 0 {
		s.sizes = append(s.sizes, make([]byte, missing)...)
	}
	s.sizes[place-s.first] = class
}

func (s *segment) join(o *segment) {
	for i, class := range o.sizes {
		if class > 0 {
			s.setSize(o.first+int64(i), class)
		}
	}
	for h, list := range o.lists {
		all := append(s.lists[h], list...)
		if n := len(s.lists[h]); n > 0 && all[n-1] > all[n] {
			slices.Sort(all)
		}
		s.lists[h] = all
	}
}

// drop removes texts, and terms that no other text has.
func (s *segment) drop(gone func(place int64) bool) {
	for i := range s.sizes {
		if gone(s.first + int64(i)) {
			s.sizes[i] = 0
		}
	}
	for h, list := range s.lists {
		if list = slices.DeleteFunc(list, gone); len(list) == 0 {
			delete(s.lists, h)
		} else {
			s.lists[h] = list
		}
	}
}

// blocks are the terms by the first bits of their hashes; a block without a term is nil.
func (s *segment) blocks() (bits int, blocks [][]byte) {
	size := 0
	for _, list := range s.lists {
		size += 3 + 2*len(list)
	}
	for bits < maxBits && size>>bits > blockBytes {
		bits++
	}
	blocks, before := make([][]byte, 1<<bits), make([]uint32, 1<<bits)
	for _, h := range slices.Sorted(maps.Keys(s.lists)) {
		i := bucket(h, bits)
		if blocks[i] == nil {
			blocks[i] = binary.AppendUvarint(nil, uint64(s.first)) //nolint:gosec // places are positive
		}
		blocks[i] = appendList(blocks[i], h-before[i], s.lists[h], s.first)
		before[i] = h
	}
	return bits, blocks
}

func bucket(hash uint32, bits int) int { return int(uint64(hash) >> (32 - bits)) } //nolint:gosec // at most 20 bits

// appendList writes a term: the gap to the hash before it, with a mark for several texts; their number; the gaps of their places.
func appendList(block []byte, gap uint32, list []int64, first int64) []byte {
	if len(list) == 1 {
		block = binary.AppendUvarint(block, uint64(gap)<<1)
	} else {
		block = binary.AppendUvarint(block, uint64(gap)<<1|1)
		block = binary.AppendUvarint(block, uint64(len(list)))
	}
	for _, place := range list {
		block = binary.AppendUvarint(block, uint64(place-first)) //nolint:gosec // places ascend
		first = place
	}
	return block
}

var errBlock = errors.New("a block of the search index is broken")

// eachTerm visits the terms of a block by rising hash. The places are valid during the visit.
func eachTerm(block []byte, visit func(hash uint32, places []int64)) error {
	r := reader{rest: block}
	first, hash := r.next(), uint64(0)
	var places []int64
	for len(r.rest) > 0 && !r.broken {
		gap, n := r.next(), uint64(1)
		if gap&1 == 1 {
			n = r.next()
		}
		if hash += gap >> 1; hash > math.MaxUint32 || n > uint64(len(r.rest)) {
			return errBlock
		}
		places = places[:0]
		for place := first; n > 0; n-- {
			place += r.next()
			places = append(places, int64(place)) //nolint:gosec // as they were written
		}
		visit(uint32(hash), places)
	}
	if r.broken {
		return errBlock
	}
	return nil
}

type reader struct {
	rest   []byte
	broken bool
}

func (r *reader) next() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.broken, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// termBytes is the size of a stored term: the lower half of its key.
const termBytes = 4

func packTerms(keys []int64) []byte {
	terms := make([]byte, 0, termBytes*len(keys))
	for _, k := range keys {
		terms = binary.BigEndian.AppendUint32(terms, uint32(k&math.MaxUint32)) //nolint:gosec // the lower half
	}
	return terms
}

func unpackTerms(terms []byte) []int64 {
	keys := make([]int64, 0, len(terms)/termBytes)
	for ; len(terms) >= termBytes; terms = terms[termBytes:] {
		keys = append(keys, int64(binary.BigEndian.Uint32(terms)))
	}
	return keys
}

// Sizes are kept in a byte: a class is a sixteenth of a doubling.
const classesOfDouble = 16

func sizeClass(terms int) byte {
	return byte(min(1+math.Round(classesOfDouble*math.Log2(float64(max(terms, 1)))), math.MaxUint8))
}

var sizeOfClass = func() (sizes [math.MaxUint8 + 1]int) {
	for class := 1; class < len(sizes); class++ {
		sizes[class] = int(math.Round(math.Exp2(float64(class-1) / classesOfDouble)))
	}
	return sizes
}()

// readSegment joins the stored parts of a segment.
func readSegment(first int64, sizes []byte, blocks [][]byte) (*segment, error) {
	s := &segment{first: first, sizes: sizes, lists: make(map[uint32][]int64)}
	for _, b := range blocks {
		if err := eachTerm(b, func(h uint32, places []int64) { s.lists[h] = slices.Clone(places) }); err != nil {
			return nil, fmt.Errorf("reading a segment of %d blocks: %w", len(blocks), err)
		}
	}
	return s, nil
}
