package rank

import (
	"hash/fnv"
	"math"
	"strings"
	"unicode"

	"ebb/memory/dates"
	"ebb/memory/text"
)

// Bounds of one text's index, all of which a search reads with the text. A longer text keeps first the terms that
// match by themselves, so that names and numbers precede single characters and everyday words.
const (
	maxTerms   = 512
	maxRepeats = 4 // repeats of one term: the score grows little with more
)

// flagMask covers the bits of the key that holds a text's flags; see [Keys].
const (
	flagBase uint32 = 0xEBB0E000
	flagMask uint32 = 0xFF

	flagQuestion uint32 = 1 << 0
	flagTime     uint32 = 1 << 1
)

// Scope is the upper half of the keys of a session, group, person or team. Keys of one scope lie together in an index,
// so that a message changes few of its pages.
type Scope uint32

// ScopeOf hashes the parts of a scope's name; their boundaries count.
func ScopeOf(parts ...string) Scope { return Scope(hash(strings.Join(parts, "\x00"))) }

// KeyFor is this scope's key for the term of another scope's key.
func (s Scope) KeyFor(key int64) int64 { return s.key(lowHash(key)) }

func (s Scope) key(h uint32) int64 { return int64(uint64(s)<<32 | uint64(h)) } //nolint:gosec // 64 bits, and no number

// lowHash is the lower half of a key: its term's hash.
func lowHash(key int64) uint32 { return uint32(key & math.MaxUint32) }

// hash is FNV-1a with the last mix of MurmurHash3, for FNV alone spreads short texts badly.
func hash(text string) uint32 {
	f := fnv.New32a()
	f.Write([]byte(text)) // it never fails
	h := f.Sum32()
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

func termHash(text string) uint32 {
	h := hash(text)
	if h&^flagMask == flagBase {
		h ^= 1 << 31
	}
	return h
}

// Keys are a text's index keys in a scope: the hash of scope and term for each occurrence, so that their number is the
// text's length. One more key holds flags for the ranking: a question, a time.
func Keys(s Scope, body string) []int64 {
	folded := text.Fold(body)
	terms := foldedTerms(folded)
	times := make(map[string]int)
	for _, t := range terms {
		times[t.text]++
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
		keys = append(keys, s.key(termHash(t.text)))
	}
	return append(keys, s.key(flagBase|flagsOf(folded)))
}

// flagsOf runs for every message, and so uses no regular expressions: they would take as long as the rest of the
// indexing.
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
