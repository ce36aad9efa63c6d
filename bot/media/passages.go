package media

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ebb/memory/text"
	"ebb/sessions"
)

var namesPage = regexp.MustCompile(`(?i)第\s*(\d{1,5})\s*[页頁张張]|(\d{1,5})\s*[页頁]|\b(?:page|p\.|slide)\s*(\d{1,5})\b`)

// pagesIn are the numbers of pages that a question names.
func pagesIn(question string) (pages []int) {
	for _, found := range namesPage.FindAllStringSubmatch(text.Fold(question), 4) {
		if n, err := strconv.Atoi(cmp.Or(found[1], found[2], found[3])); err == nil && !slices.Contains(pages, n) {
			pages = append(pages, n)
		}
	}
	return pages
}

// maxSearched bounds the documents of a view that a question is looked for in.
const maxSearched = 3

// Passages looks in the large documents of messages for a question, and returns the parts that fit into room tokens, best first. Documents
// of messages before the asked ones are searched only for pages that the question names, and by the words that few pages have. It is empty
// if nothing was found, or there is no such document.
func (r *Reader) Passages(ctx context.Context, key sessions.Key, reads sessions.ModelID, before, asked []sessions.Event, question string, room int) (string, error) {
	var list []sessions.Media
	seen := map[string]bool{}
	add := func(events []sessions.Event) {
		for _, e := range slices.Backward(events) {
			for _, m := range e.Media {
				if isLarge(m) && !seen[m.ID] && len(list) < maxSearched {
					seen[m.ID] = true
					list = append(list, m)
				}
			}
		}
	}
	add(asked)
	now := len(list)
	add(before)
	var b strings.Builder
	for i, m := range list {
		part, err := r.passagesOf(ctx, key, reads, m, question, room/len(list), i < now)
		if err != nil {
			return "", err
		}
		b.WriteString(part)
	}
	return strings.TrimSpace(b.String()), nil
}

func (r *Reader) passagesOf(ctx context.Context, key sessions.Key, reads sessions.ModelID, m sessions.Media, question string, room int, isAsked bool) (string, error) {
	pages, err := r.bestPages(ctx, key, m, question, isAsked)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	head := fmt.Sprintf("%s (%d 页 pages):\n", sessions.QuoteText(m.Name), m.Pages)
	room -= r.cfg.Count(head)
	for _, p := range readable(pages, reads) {
		title := heading(p) + "\n"
		left := room - r.cfg.Count(title)
		if left < leastPassage {
			break
		}
		body := strings.TrimSpace(p.Text)
		n := r.cfg.Count(body)
		if n > left {
			body = around(body, question, len(body)*left*9/10/n)
			n = r.cfg.Count(body)
		}
		if n > left {
			continue
		}
		room = left - n
		b.WriteString(title + body + "\n")
	}
	if b.Len() == 0 {
		return "", nil
	}
	return head + b.String(), nil
}

const (
	// leastPassage is the least room for a part of a page, in tokens.
	leastPassage = 60
	maxPassages  = 8
)

// pagesAtOnce bounds the pages that a search holds. A book of 2,000 pages has 8 MB of text, and many conversations may have one.
const pagesAtOnce = 100

// bestPages finds the pages of a document for a question, best first. A long document is read in parts, and the best pages once more.
func (r *Reader) bestPages(ctx context.Context, key sessions.Key, m sessions.Media, question string, isAsked bool) ([]sessions.MediaPage, error) {
	if err := r.searches.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	defer r.searches.Release(1)
	terms := setOf(question)
	var counted []countedPage
	var part []sessions.MediaPage
	for from := 1; from <= max(1, m.Pages); from += pagesAtOnce {
		var err error
		if part, err = r.cfg.Store.Pages(ctx, key, m.ID, from, from+pagesAtOnce-1); err != nil {
			return nil, err
		}
		for _, p := range part {
			counted = append(counted, countPage(p, terms))
		}
	}
	var best []sessions.MediaPage
	for _, number := range bestOf(counted, question, isAsked) {
		if m.Pages > pagesAtOnce {
			var err error
			if part, err = r.cfg.Store.Pages(ctx, key, m.ID, number, number); err != nil {
				return nil, err
			}
		}
		for _, p := range part {
			if p.Number == number {
				best = append(best, p)
			}
		}
	}
	return best, nil
}

// bestOf returns the numbers of the named pages, then of those with the rarest words of the question, by BM25. A question without a word of
// the document gets its beginning, if it asks about that document.
func bestOf(pages []countedPage, question string, isAsked bool) (best []int) {
	for _, n := range pagesIn(question) {
		if slices.ContainsFunc(pages, func(p countedPage) bool { return p.number == n }) {
			best = append(best, n)
		}
	}
	named := len(best)
	for _, n := range ranked(pages, isAsked) {
		if len(best) < maxPassages && !slices.Contains(best[:named], n) {
			best = append(best, n)
		}
	}
	if len(best) == 0 && isAsked {
		for _, p := range pages[:min(len(pages), 2)] {
			best = append(best, p.number)
		}
	}
	return best
}

// termsOf are the words of a text: Latin ones and numbers, and pairs of adjacent Chinese characters.
func termsOf(s string) []string {
	tokens := text.Tokenize(s)
	terms := make([]string, 0, len(tokens))
	for i, t := range tokens {
		before, after := i > 0 && text.IsWide(tokens[i-1]), i+1 < len(tokens) && text.IsWide(tokens[i+1])
		switch {
		case !text.IsWide(t):
			terms = append(terms, t)
		case after:
			terms = append(terms, t+tokens[i+1])
		case !before:
			terms = append(terms, t)
		}
	}
	return terms
}

func setOf(s string) map[string]bool {
	set := map[string]bool{}
	for _, t := range termsOf(s) {
		set[t] = true
	}
	return set
}

// countedPage is a page without its text.
type countedPage struct {
	number int
	terms  map[string]int // those of the question; nil: none
	length int
}

func countPage(p sessions.MediaPage, terms map[string]bool) countedPage {
	c := countedPage{number: p.Number}
	for _, term := range termsOf(p.Text) {
		c.length++
		if terms[term] {
			if c.terms == nil {
				c.terms = map[string]int{}
			}
			c.terms[term]++
		}
	}
	return c
}

type scored struct {
	number int
	score  float64
}

func ranked(pages []countedPage, isAsked bool) []int {
	all, sum := float64(len(pages)), 0.0
	in := map[string]int{}
	for _, p := range pages {
		sum += float64(p.length)
		for term := range p.terms {
			in[term]++
		}
	}
	least := 0.0
	if !isAsked { // a talk about something else shares common words only
		least = math.Log(1 + all/2)
	}
	var list []scored
	for _, p := range pages {
		score := 0.0
		for term, n := range p.terms {
			rarity := math.Log(1 + (all-float64(in[term])+0.5)/(float64(in[term])+0.5))
			score += rarity * float64(n) * 2.2 / (float64(n) + 1.2*(0.25+0.75*float64(p.length)*all/max(1, sum)))
		}
		if score > least {
			list = append(list, scored{p.number, score})
		}
	}
	slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	best := make([]int, 0, maxPassages)
	for _, s := range list[:min(len(list), maxPassages)] {
		best = append(best, s.number)
	}
	return best
}

// around is a part of a text of limit bytes, near the densest words of a question.
func around(body, question string, limit int) string {
	if limit <= 0 || len(body) <= limit {
		return body
	}
	terms := setOf(question)
	lines := strings.SplitAfter(body, "\n")
	best, at, from := -1, 0, 0
	for _, line := range lines {
		hits := 0
		for _, token := range termsOf(line) {
			if terms[token] {
				hits++
			}
		}
		if hits > best {
			best, from = hits, at
		}
		at += len(line)
	}
	from = max(0, min(from-limit/4, len(body)-limit))
	return "…" + strings.TrimSpace(strings.ToValidUTF8(body[from:min(len(body), from+limit)], "")) + "…"
}
