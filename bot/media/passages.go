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

// heading is the line before a page: people cite the numbers of pages.
func heading(p sessions.MediaPage) string {
	if p.Title != "" {
		return fmt.Sprintf("[第 %d 页 page %d: %s]", p.Number, p.Number, p.Title)
	}
	return fmt.Sprintf("[第 %d 页 page %d]", p.Number, p.Number)
}

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
func (r *Reader) Passages(ctx context.Context, key sessions.Key, before, asked []sessions.Event, question string, room int) (string, error) {
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
		part, err := r.passagesOf(ctx, key, m, question, room/len(list), i < now)
		if err != nil {
			return "", err
		}
		b.WriteString(part)
	}
	return strings.TrimSpace(b.String()), nil
}

func (r *Reader) passagesOf(ctx context.Context, key sessions.Key, m sessions.Media, question string, room int, isAsked bool) (string, error) {
	pages, err := r.cfg.Store.Pages(ctx, key, m.ID, 1, max(1, m.Pages))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	head := fmt.Sprintf("%s (%d 页 pages):\n", m.Name, m.Pages)
	room -= r.cfg.Count(head)
	for _, p := range bestOf(pages, question, isAsked) {
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

// bestOf returns the named pages, then those with the rarest words of the question, by BM25. A question without a word of the document gets
// its beginning, if it asks about that document.
func bestOf(pages []sessions.MediaPage, question string, isAsked bool) []sessions.MediaPage {
	var best []sessions.MediaPage
	for _, n := range pagesIn(question) {
		for _, p := range pages {
			if p.Number == n {
				best = append(best, p)
			}
		}
	}
	named := len(best)
	for _, p := range ranked(pages, question, isAsked) {
		if len(best) < maxPassages && !slices.ContainsFunc(best[:named], func(b sessions.MediaPage) bool { return b.Number == p.Number }) {
			best = append(best, p)
		}
	}
	if len(best) == 0 && isAsked {
		best = pages[:min(len(pages), 2)]
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

type scored struct {
	page  sessions.MediaPage
	score float64
}

func ranked(pages []sessions.MediaPage, question string, isAsked bool) []sessions.MediaPage {
	terms := setOf(question)
	counts := make([]map[string]int, len(pages))
	lengths, sum := make([]float64, len(pages)), 0.0
	in := map[string]int{}
	for i, p := range pages {
		counts[i] = map[string]int{}
		for _, token := range termsOf(p.Text) {
			lengths[i]++
			if terms[token] {
				counts[i][token]++
			}
		}
		sum += lengths[i]
		for token := range counts[i] {
			in[token]++
		}
	}
	least := 0.0
	if !isAsked { // a talk about something else shares common words only
		least = math.Log(1 + float64(len(pages))/2)
	}
	var list []scored
	for i, p := range pages {
		score := 0.0
		for token, n := range counts[i] {
			rarity := math.Log(1 + (float64(len(pages))-float64(in[token])+0.5)/(float64(in[token])+0.5))
			score += rarity * float64(n) * 2.2 / (float64(n) + 1.2*(0.25+0.75*lengths[i]*float64(len(pages))/max(1, sum)))
		}
		if score > least {
			list = append(list, scored{p, score})
		}
	}
	slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	best := make([]sessions.MediaPage, 0, maxPassages)
	for _, s := range list[:min(len(list), maxPassages)] {
		best = append(best, s.page)
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
