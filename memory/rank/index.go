package rank

import (
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"unicode"

	"ebb/memory/dates"
	"ebb/memory/text"
)

// Bounds of one text's index, all of which a search reads. A longer text keeps first the terms that match by
// themselves, such as names and numbers.
const (
	maxTerms   = 512
	maxRepeats = 4 // the score grows little with more
)

// flagMask covers a text's flags in a key; see [Keys].
const (
	flagBase uint32 = 0xEBB0E000
	flagMask uint32 = 0xFF

	flagQuestion uint32 = 1 << 0
	flagTime     uint32 = 1 << 1
)

// Scope is the upper half of the keys of a session, group, person or team: they lie together, so that a message
// changes few pages of an index.
type Scope uint32

// ScopeOf hashes the parts of a scope's name; their boundaries count.
func ScopeOf(parts ...string) Scope { return Scope(hashText(strings.Join(parts, "\x00"))) }

// KeyFor is this scope's key for the term of another scope's key.
func (s Scope) KeyFor(key int64) int64 { return s.keyOf(lowHash(key)) }

func (s Scope) keyOf(h uint32) int64 { return int64(uint64(s)<<32 | uint64(h)) } //nolint:gosec // 64 bits, and no number

func lowHash(key int64) uint32 { return uint32(key & math.MaxUint32) }

// hashText is FNV-1a with the last mix of MurmurHash3, for FNV alone spreads short texts badly.
func hashText(text string) uint32 {
	f := fnv.New32a()
	f.Write([]byte(text))
	h := f.Sum32()
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

func termHash(text string) uint32 {
	h := hashText(text)
	if h&^flagMask == flagBase {
		h ^= 1 << 31
	}
	return h
}

// Keys are a text's index keys in a scope, one for each occurrence of a term, so that their number is its length. One
// more key holds the flags for the ranking.
func Keys(s Scope, body string) []int64 {
	folded := text.Fold(body)
	terms := foldedTerms(folded)
	times := make(map[string]int, min(len(terms), maxTerms))
	if len(terms) > maxTerms {
		for _, t := range terms {
			times[t.text]++
		}
	}
	long := len(times) > maxTerms
	clear(times)
	keys := make([]int64, 0, min(len(terms), 2*maxTerms)+1)
	for _, t := range terms {
		n := times[t.text]
		if n == maxRepeats || n == 0 && len(times) == maxTerms || long && (t.kind == glyph || t.kind == soft) {
			continue
		}
		times[t.text] = n + 1
		keys = append(keys, s.keyOf(termHash(t.text)))
	}
	return append(keys, s.keyOf(flagBase|flagsOf(folded)))
}

// TermHashes are the different terms among a text's keys, without their scope and without the flags.
func TermHashes(keys []int64) []uint32 {
	hashes := make([]uint32, 0, len(keys))
	for _, k := range keys {
		if h := lowHash(k); h&^flagMask != flagBase {
			hashes = append(hashes, h)
		}
	}
	slices.Sort(hashes)
	return slices.Compact(hashes)
}

// Regular expressions would double the time of every message.
func flagsOf(text string) uint32 {
	var flags uint32
	if isQuestion(text) {
		flags |= flagQuestion
	}
	if dates.HasTimeWord(text) {
		flags |= flagTime
	}
	return flags
}

func isQuestion(text string) bool {
	if strings.Contains(text, "?") {
		return true
	}
	text = strings.TrimRightFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("。!~", r) })
	return strings.HasSuffix(text, "吗") || strings.HasSuffix(text, "呢") || strings.HasSuffix(text, "么")
}
