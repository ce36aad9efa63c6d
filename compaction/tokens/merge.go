package tokens

import "math"

// maxPiece bounds the bytes of one merge: merging is quadratic, and 64 KB of one letter would block a core for
// seconds. A cut is off by at most one token.
const maxPiece = 256

// rankTable is a byte pair table; a lower rank merges earlier.
type rankTable struct {
	pairs [1 << 16]int32 // two-byte tokens, the most frequent look-ups
	rest  map[string]int32
}

// none is the rank of bytes that are no token.
const none = math.MaxInt32

func newRanks(table map[string]int) *rankTable {
	r := &rankTable{rest: make(map[string]int32, len(table))}
	for i := range r.pairs {
		r.pairs[i] = none
	}
	for token, rank := range table {
		if len(token) == 2 {
			r.pairs[int(token[0])<<8|int(token[1])] = int32(rank) //nolint:gosec // there are 200,000 tokens
		} else {
			r.rest[token] = int32(rank) //nolint:gosec // there are 200,000 tokens
		}
	}
	return r
}

func (r *rankTable) rankOf(token string) int32 {
	if len(token) == 2 {
		return r.pairs[int(token[0])<<8|int(token[1])]
	}
	if rank, ok := r.rest[token]; ok {
		return rank
	}
	return none
}

func (r *rankTable) countTokens(piece string) int {
	n := 0
	for ; len(piece) > maxPiece; piece = piece[maxPiece:] {
		n += r.mergePairs(piece[:maxPiece])
	}
	return n + r.mergePairs(piece)
}

// mergePairs counts the tokens of at most maxPiece bytes. It joins the neighbours with the lowest rank, the first of
// equals, until no pair is a token.
func (r *rankTable) mergePairs(piece string) int {
	if len(piece) <= 1 || r.rankOf(piece) != none {
		return min(len(piece), 1)
	}
	// Part i is from starts[i] to starts[i+1]; pair[i] is the rank of parts i and i+1 together.
	var starts [maxPiece + 1]int16
	var pair [maxPiece]int32
	n := len(piece)
	for i := range n + 1 {
		starts[i] = int16(i) //nolint:gosec // at most maxPiece
	}
	for i := range n - 1 {
		pair[i] = r.rankOf(piece[i : i+2])
	}
	for n > 1 {
		lowest, at := int32(none), -1
		for i, rank := range pair[:n-1] {
			if rank < lowest {
				lowest, at = rank, i
			}
		}
		if at < 0 {
			break
		}
		n--
		copy(starts[at+1:n+1], starts[at+2:n+2])
		copy(pair[at:n-1], pair[at+1:n])
		if at < n-1 {
			pair[at] = r.rankOf(piece[starts[at]:starts[at+2]])
		}
		if at > 0 {
			pair[at-1] = r.rankOf(piece[starts[at-1]:starts[at+1]])
		}
	}
	return n
}
