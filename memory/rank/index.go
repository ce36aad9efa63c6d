package rank

import (
	"hash/fnv"
	"strings"
)

// Bounds of what is kept of one text: its first terms, each so often as its score still grows.
const (
	maxTerms   = 4096
	maxRepeats = 8
)

// flagMask covers the bits of the key that tells a text's marks; see [Keys].
const (
	flagBase uint32 = 0xEBB0E000
	flagMask uint32 = 0xFF

	flagQuestion uint32 = 1 << 0
	flagTime     uint32 = 1 << 1
)

// Scope is the upper half of the keys of one scope: a session, a group, a person, the team. Keys of one scope lie
// together in an index, so that a message changes few of its pages.
type Scope uint32

// ScopeOf hashes what names a scope; the parts are told apart.
func ScopeOf(parts ...string) Scope { return Scope(hash(strings.Join(parts, "\x00"))) }

func (s Scope) key(h uint32) int64 { return int64(uint64(s)<<32 | uint64(h)) }

// hash is FNV-1a with the last mix of MurmurHash3, for FNV alone spreads short texts badly.
func hash(text string) uint32 {
	f := fnv.New32a()
	f.Write([]byte(text)) //nolint:errcheck // it never fails
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

// Keys is what a search finds a text of a scope by: the hash of scope and term for each of its terms, as often as it
// occurs, so that their number is the text's length; and one key that tells what the ranking asks of the text itself,
// whether it is a question and whether it names a time.
func Keys(s Scope, text string) []int64 {
	times := make(map[string]int)
	var keys []int64
	for _, t := range termsOf(text) {
		times[t.text]++
		if times[t.text] > maxRepeats || times[t.text] == 1 && len(times) > maxTerms {
			continue
		}
		keys = append(keys, s.key(termHash(t.text)))
	}
	return append(keys, s.key(flagBase|flagsOf(text)))
}

func flagsOf(text string) uint32 {
	var flags uint32
	if asks.MatchString(strings.TrimSpace(text)) {
		flags |= flagQuestion
	}
	if timeWords.MatchString(fold(text)) {
		flags |= flagTime
	}
	return flags
}
