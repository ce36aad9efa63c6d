package rank

// fuseRank is the constant of reciprocal rank fusion: G. V. Cormack, C. L. A. Clarke and S. Büttcher, "Reciprocal Rank
// Fusion outperforms Condorcet and individual rank learning methods", 2009.
const fuseRank = 60

// Fuse makes one ranking of two, each best first and without repeats. The second, by meaning, counts weight, from 0 to
// 1, against 1 of the first, by words.
//
// The order is reciprocal rank fusion with one change. The original puts all results by meaning alone behind all by
// words as soon as the weight is below 1. Here the first n results have the n/(1+weight) best by words and the
// n*weight/(1+weight) best by meaning. An empty side leaves the other unchanged.
func Fuse[K comparable](words, meaning []K, weight float64) []K {
	if !(weight > 0) { // NaN too
		weight = 0
	}
	weight = min(weight, 1)
	f := fusion[K]{scores: make(map[K]float64, len(words)+len(meaning)), done: make(map[K]bool)}
	f.addRanking(words, 1)
	f.addRanking(meaning, weight)
	fused := make([]K, 0, len(f.all))
	for n := 1; n <= len(f.all); n++ {
		share := float64(n) / (1 + weight)
		next, ok := f.nextOwed(meaning, share*weight)
		if !ok {
			next, ok = f.nextOwed(words, share)
		}
		if !ok {
			next = f.nextBest()
		}
		f.done[next] = true
		fused = append(fused, next)
	}
	return fused
}

type fusion[K comparable] struct {
	all    []K
	scores map[K]float64
	done   map[K]bool
}

func (f *fusion[K]) addRanking(ranking []K, weight float64) {
	for i, k := range ranking {
		if _, known := f.scores[k]; !known {
			f.all = append(f.all, k)
		}
		f.scores[k] += weight / float64(fuseRank+i+1)
	}
}

func (f *fusion[K]) nextOwed(ranking []K, share float64) (next K, ok bool) {
	const rounding = 1e-9 // 3 * (1/3) is 1
	for _, k := range ranking[:min(int(share+rounding), len(ranking))] {
		if !f.done[k] {
			return k, true
		}
	}
	return next, false
}

func (f *fusion[K]) nextBest() (found K) {
	top := -1.0
	for _, k := range f.all {
		if s := f.scores[k]; !f.done[k] && s > top {
			found, top = k, s
		}
	}
	return found
}
