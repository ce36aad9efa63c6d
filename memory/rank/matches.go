package rank

import (
	"slices"
	"time"
)

// Match is a found text: its index among the added ones, its score from 0 towards 1, and the reasons.
type Match struct {
	Place int
	Doc   Doc
	Score float64
	Why   []string
}

// Rank returns the n best, best first, and none if no text holds enough of the query: a chance match is worse than no
// result.
func (p *Pool) Rank(n int) []Match {
	order := p.scoreTexts()
	if !slices.ContainsFunc(order, func(i int) bool { return p.docs[i].carries }) {
		return nil
	}
	var finds []Match
	for _, i := range order {
		d := &p.docs[i]
		if len(finds) == n || d.score <= leastOfBest*p.docs[order[0]].score {
			break
		}
		if d.base == 0 && d.length == 0 {
			continue // "ok" only stands next to a match
		}
		finds = append(finds, Match{Place: i, Doc: d.Doc, Score: d.score / (d.score + p.maxScore()), Why: p.listReasons(d)})
	}
	return finds
}

// Adjacent are the places of events outside the pool, up to reach around the n best events, which may be answers.
func (p *Pool) Adjacent(n int) []int64 {
	known := make(map[int64]bool, len(p.docs))
	for i := range p.docs {
		known[p.docs[i].Seq] = true
	}
	var missing []int64
	for _, i := range p.scoreTexts() {
		d := &p.docs[i]
		if n == 0 || d.score <= 0 {
			break
		}
		if d.Seq == 0 {
			continue
		}
		n--
		for s := max(d.Seq-reach, 1); s <= d.Seq+reach; s++ {
			if !known[s] {
				known[s] = true
				missing = append(missing, s)
			}
		}
	}
	return missing
}

const (
	whyBeside = "beside a match"
	whyPerson = "person named"
	whyDate   = "date" // the date follows
)

func (p *Pool) listReasons(d *scoredDoc) []string {
	var why []string
	for i, c := range d.counts {
		t := p.q.terms[i]
		if c > 0 && t.kind != glyph && len(why) < maxWhy {
			why = append(why, t.shown)
		}
	}
	if len(why) == 0 {
		why = append(why, whyBeside)
	}
	if p.q.namesPerson(d.Who) {
		why = append(why, whyPerson)
	}
	if f := p.q.dateFactor(d.At); f > 1 {
		why = append(why, whyDate+" "+d.At.In(p.q.now.Location()).Format(time.DateOnly))
	}
	return why
}

const maxWhy = 6
