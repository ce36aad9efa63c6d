package rank

import (
	"cmp"
	"slices"
)

// The parameters of BM25: S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
// 2009. Messages are short, so that length says little: b is 0.3, not 0.75.
const (
	saturation = 1.2
	lengthPart = 0.3
)

// The best place is first. Scores by words, neighbours and sitting are added, then multiplied by speaker, time and
// role: a named person's text is found though only the question before it has the words.
func (p *Pool) scoreTexts() []int {
	weights, average := p.termWeights(), p.averageLength()
	for i := range p.docs {
		d := &p.docs[i]
		d.base = bm25(d.counts, weights, d.length/average)
		if p.q.noTerms && len(d.Keys) > 0 && (p.q.dateFactor(d.At) > 1 || p.q.namesPerson(d.Who)) {
			d.base += looseScore
		}
	}
	p.expandQuery()
	events := p.eventPlaces()
	sittings := p.scoreSittings(events)
	for i := range p.docs {
		p.docs[i].score = p.docs[i].base
		p.docs[i].carries = p.justifiesResult(&p.docs[i])
	}
	for at := range events {
		d := &p.docs[events[at]]
		d.score += p.scoreNeighbours(events, at)
		if d.flags&flagQuestion != 0 {
			d.score *= questionPart
		}
		d.score += sittingShare * sittings[d.sitting]
	}
	assistant := false
	order := make([]int, len(p.docs))
	for i := range p.docs {
		assistant = assistant || p.docs[i].Assistant
	}
	for i := range p.docs {
		p.docs[i].score *= p.q.propertyFactor(&p.docs[i], assistant)
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &p.docs[a], &p.docs[b]
		return cmp.Or(cmp.Compare(y.score, x.score), y.At.Compare(x.At), cmp.Compare(y.Seq, x.Seq), cmp.Compare(a, b))
	})
	return order
}

func (p *Pool) termWeights() []float64 {
	weights := make([]float64, len(p.q.terms))
	for i, t := range p.q.terms {
		weights[i] = t.weight * termRarity(float64(max(p.total, len(p.docs))), max(p.df[i], p.common[i]))
	}
	return weights
}

// maxScore is of an average text with every term once.
func (p *Pool) maxScore() float64 {
	sum := 0.0
	for i, w := range p.termWeights() {
		if !p.q.terms[i].synonym {
			sum += w
		}
	}
	return max(sum, 1)
}

func (p *Pool) averageLength() float64 {
	sum := 0.0
	for i := range p.docs {
		sum += p.docs[i].length
	}
	return max(sum/float64(max(len(p.docs), 1)), 1)
}

// saturateCount is BM25's part for one term; length is relative to the average.
func saturateCount(count, length float64) float64 {
	return count * (saturation + 1) / (count + saturation*(1-lengthPart+lengthPart*length))
}

// Once is the weight of one occurrence; length is relative to the average. Short texts get more.
func Once(length float64) float64 { return saturateCount(1, length) }

func bm25(counts []uint8, weights []float64, length float64) float64 {
	sum := 0.0
	for i, c := range counts {
		if c > 0 {
			sum += weights[i] * saturateCount(float64(c), length)
		}
	}
	return sum
}

// Words of nearly every chat justify none, unless the query has no other.
func (p *Pool) justifiesResult(d *scoredDoc) bool {
	for i, c := range d.counts {
		if c > 0 && (p.q.noTerms || selectsTexts(p.q.terms[i]) || p.q.terms[i].name) {
			return true
		}
	}
	return p.q.noTerms && d.base > 0
}

func (p *Pool) eventPlaces() []int {
	var events []int
	for i := range p.docs {
		if p.docs[i].Seq > 0 {
			events = append(events, i)
		}
	}
	slices.SortFunc(events, func(a, b int) int { return cmp.Compare(p.docs[a].Seq, p.docs[b].Seq) })
	return events
}

// scoreSittings scores the events between pauses as one text.
func (p *Pool) scoreSittings(events []int) []float64 {
	var counts [][]float64
	var lengths []float64
	total, df := 0.0, make([]float64, len(p.q.terms))
	for at, i := range events {
		d := &p.docs[i]
		if at == 0 || d.At.Sub(p.docs[events[at-1]].At) > sittingGap {
			counts, lengths = append(counts, make([]float64, len(p.q.terms))), append(lengths, 0)
		}
		d.sitting = len(counts) - 1
		for j, c := range d.counts {
			if c > 0 && counts[d.sitting][j] == 0 {
				df[j]++
			}
			counts[d.sitting][j] += float64(c)
		}
		lengths[d.sitting] += d.length
		total += d.length
	}
	scores := make([]float64, len(counts))
	for s := range counts {
		for j, c := range counts[s] {
			if c > 0 {
				weight := p.q.terms[j].weight * termRarity(float64(len(counts)), df[j])
				scores[s] += weight * saturateCount(c, lengths[s]*float64(len(counts))/max(total, 1))
			}
		}
	}
	// A share that all have would be held against memories, which have no sitting.
	if len(scores) > 0 {
		least := slices.Min(scores)
		for s := range scores {
			scores[s] -= least
		}
	}
	return scores
}

// scoreNeighbours adds shares of the events next to one, within the same sitting: what follows a question is often its answer, and
// shares no word with it.
func (p *Pool) scoreNeighbours(events []int, at int) float64 {
	d, sum := &p.docs[events[at]], 0.0
	for k := max(0, at-reach); k <= min(len(events)-1, at+reach); k++ {
		n := &p.docs[events[k]]
		share := 0.0
		switch n.Seq - d.Seq {
		case -1:
			share = nextShare
			if n.flags&flagQuestion != 0 {
				share += answerShare
			}
		case 1:
			share = nextShare
		case -reach, reach:
			share = secondShare
		}
		if n.sitting != d.sitting || share == 0 {
			continue
		}
		sum += share * n.base
	}
	return sum
}

func (q Query) propertyFactor(d *scoredDoc, assistant bool) float64 {
	f := q.dateFactor(d.At)
	if q.namesPerson(d.Who) {
		f *= personFactor
	}
	if q.when && d.flags&flagTime != 0 {
		f *= timeFactor
	}
	if assistant && d.Assistant == q.you {
		f *= roleFactor
	}
	if d.Seq == 0 {
		f *= memoryFactor
	}
	if d.Outdated {
		f *= outdatedPart
	}
	return f
}
