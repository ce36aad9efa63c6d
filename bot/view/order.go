package view

import (
	"fmt"
	"slices"
)

// Piece is a piece of a request between the system prompt and the question.
type Piece string

// The parts of a request.
const (
	PiecePinned    Piece = "pinned"    // memory of members and scope, read with each compaction
	PieceSummaries Piece = "summaries" // summaries of older events, with the note of a gap
	PieceRaw       Piece = "raw"       // original events
	PieceRecall    Piece = "recall"    // hits of the search for the question
)

// Order has each part once.
type Order []Piece

// DefaultOrder begins with the parts that change least, so that provider prompt caches hold.
func DefaultOrder() Order { return Order{PiecePinned, PieceSummaries, PieceRaw, PieceRecall} }

// Check returns an error that names the first unknown, repeated or missing part.
func (o Order) Check() error {
	for i, p := range o {
		switch {
		case !slices.Contains(DefaultOrder(), p):
			return fmt.Errorf("%q is no part", p)
		case slices.Contains(o[:i], p):
			return fmt.Errorf("%q stands twice", p)
		}
	}
	for _, p := range DefaultOrder() {
		if !slices.Contains(o, p) {
			return fmt.Errorf("%q is missing", p)
		}
	}
	return nil
}

// runs groups the parts by message: pinned memory and summaries share one where they are neighbors.
func (o Order) runs() [][]Piece {
	var runs [][]Piece
	for _, p := range o {
		if last := len(runs) - 1; last >= 0 && p.reference() && runs[last][0].reference() {
			runs[last] = append(runs[last], p)
			continue
		}
		runs = append(runs, []Piece{p})
	}
	return runs
}

func (p Piece) reference() bool { return p == PiecePinned || p == PieceSummaries }
