// Package blame finds the parts of a request at fault for its refusal, by asking. It is pure but for the question.
package blame

import "context"

// Ask reports whether a request is refused that has the parts marked true, and none of the others. An error ends the search.
type Ask func(ctx context.Context, with []bool) (refused bool, err error)

// Found is the outcome of a search.
type Found struct {
	Guilty []int // parts at fault, in order
	// Sound is the number of parts at the beginning that are known: a request with those of them that are not guilty is
	// accepted. The search is complete if it is the number of all parts.
	Sound int
	Asked int // questions
}

// Find looks for the parts at fault among n, in at most the given number of questions. It asks about beginnings of the request:
// they share the prefix that providers cache, and also show parts that are at fault only behind others. A part is guilty if the
// accepted request before it is refused with it. One guilty part among n costs about log2(n)+2 questions.
//
// After an error, or with too few questions, the result holds what was found so far.
func Find(ctx context.Context, n, most int, ask Ask) (Found, error) {
	s := search{ask: ask, most: most, kept: make([]bool, n)}
	err := s.run(ctx)
	if err == errSpent { //nolint:errorlint // never wrapped
		err = nil
	}
	return s.Found, err
}

type search struct {
	Found
	ask  Ask
	most int
	kept []bool // parts of the sound beginning that are not guilty
}

type spent struct{}

func (spent) Error() string { return "the questions are used up" }

var errSpent error = spent{}

// refused asks about the sound beginning and the next parts up to end.
func (s *search) refused(ctx context.Context, end int) (bool, error) {
	if s.Asked >= s.most {
		return false, errSpent
	}
	s.Asked++
	with := make([]bool, len(s.kept))
	copy(with, s.kept)
	for i := s.Sound; i < end; i++ {
		with[i] = true
	}
	return s.ask(ctx, with)
}

// accept makes the parts up to end sound.
func (s *search) accept(end int) {
	for ; s.Sound < end; s.Sound++ {
		s.kept[s.Sound] = true
	}
}

func (s *search) run(ctx context.Context) error {
	for n := len(s.kept); s.Sound < n; {
		refused, err := s.refused(ctx, n)
		if err != nil {
			return err
		}
		if !refused {
			s.accept(n)
			return nil
		}
		if err := s.next(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// next finds the first guilty part behind the sound beginning; the request up to bad is refused. After a guilty part the next
// one is often near: the steps begin small and double.
func (s *search) next(ctx context.Context, bad int) error {
	for step := 1; len(s.Guilty) > 0 && s.Sound+step < bad; step *= 2 {
		end := s.Sound + step
		refused, err := s.refused(ctx, end)
		if err != nil {
			return err
		}
		if refused {
			bad = end
			break
		}
		s.accept(end)
	}
	for s.Sound+1 < bad {
		middle := (s.Sound + bad) / 2
		refused, err := s.refused(ctx, middle)
		if err != nil {
			return err
		}
		if refused {
			bad = middle
		} else {
			s.accept(middle)
		}
	}
	s.Guilty = append(s.Guilty, s.Sound)
	s.Sound++
	return nil
}
