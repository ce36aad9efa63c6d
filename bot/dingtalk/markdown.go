package dingtalk

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ebb/bot/dingtalk/card"
	"ebb/bot/dingtalk/markdown"
	"ebb/bot/dingtalk/value"
	"ebb/sessions"
)

// DingTalk refuses webhook bodies over 20,000 bytes and API msgParams over 15,000. A part stays below that, with room
// for title, mentions and JSON.
const (
	maxPart     = 11500
	maxMentions = 50
	maxPrefix   = 1000 // longest prefix of mentions, in bytes
)

type message struct {
	title string
	text  string   // model's text, with mentions made harmless
	place string   // number of the part as a line; empty for a single part
	ids   []string // staff ids to mention
	names []string // people to mention
	plain []string // names of people without a staff id
}

// partsOf are the messages of a reply as clients may show them.
func partsOf(pictures markdown.Pictures, o sessions.Outgoing) []message {
	r := withAskers(o)
	r.Text = pictures.Safe(r.Text)
	return compose(r)
}

// The parts depend on the text alone, so that repeated sends are equal. Only the first mentions the askers.
func compose(r sessions.Reply) []message {
	text := markdown.Harmless(r.Text)
	title := titleOf(text)
	var out []message
	for _, text := range cutPieces(strings.TrimSpace(text), r.Target.Card != "") {
		if text := strings.TrimRightFunc(strings.Trim(text, "\n"), unicode.IsSpace); text != "" {
			out = append(out, message{title: title, text: text})
		}
	}
	for i := range out {
		if len(out) > 1 {
			out[i].place = fmt.Sprintf("(%d/%d)\n\n", i+1, len(out))
		}
	}
	if len(out) > 0 && r.Target.ConversationType != sessions.Private {
		out[0].addPeople(r.Target.Mentions)
	}
	return out
}

// The first part of a reply that begins on a card fits the card. The rest are messages.
func cutPieces(text string, onCard bool) []string {
	messages := markdown.Budget{Limit: maxPart, Size: escapedLen}
	if onCard {
		return card.SplitOnto(text, messages)
	}
	var out []string
	for _, p := range markdown.Split(text, messages, messages) {
		out = append(out, p.Text())
	}
	return out
}

// Several replies in one message each name their asker.
func withAskers(o sessions.Outgoing) sessions.Reply {
	r := o.Reply
	if len(o.Joined) == 0 || r.Target.ConversationType != sessions.Group {
		return r
	}
	var texts []string
	for _, one := range o.Joined {
		var whose message
		whose.addPeople(slices.DeleteFunc(slices.Clone(one.Target.Mentions), func(m sessions.Mention) bool { return m.Named }))
		names := whose.names
		if len(names) == 0 {
			names = whose.ids
		}
		text := one.Text
		if len(names) > 0 {
			text = "**" + strings.Join(names, "、") + "**\n\n" + text
		}
		texts = append(texts, text)
	}
	r.Text = strings.Join(texts, "\n\n---\n\n")
	return r
}

// addPeople collects the addressees without duplicates, up to DingTalk's bound.
func (m *message) addPeople(people []sessions.Mention) {
	seen := map[sessions.UserID]bool{}
	size := 0
	for _, p := range people {
		id, name := string(p.StaffID), safeNick(p.Nick)
		if !usableID(id) {
			id = ""
		}
		size += len(id) + len(name) + 3
		if seen[p.StaffID] && p.StaffID != "" || size > maxPrefix || len(m.ids)+len(m.plain) == maxMentions {
			continue
		}
		seen[p.StaffID] = true
		if name != "" && !p.Named {
			m.names = append(m.names, name)
		}
		if id != "" {
			m.ids = append(m.ids, id)
		} else if name != "" && !p.Named {
			m.plain = append(m.plain, name)
		}
	}
}

// DingTalk notifies ids that are in the list and, after an @, in the text.
func (m message) withMentions() string {
	var words []string
	for _, id := range m.ids {
		words = append(words, "@"+id)
	}
	return withLead(append(words, m.plain...), " ", m.place+m.text)
}

// The open API has no mentions, so the text names people.
func (m message) withNames() string { return withLead(m.names, "、", m.place+m.text) }

// The names at the beginning of a card stand beside [card.Limit], in characters.
const maxNames = 150

// A card mentions those who had asked when it was created, and others may have joined since. So an answer to several
// people names them.
func (m message) onCard() string {
	if len(m.ids)+len(m.plain) < 2 {
		return m.place + m.text
	}
	names, size := []string{}, 0
	for _, name := range m.names {
		if size += utf8.RuneCountInString(name) + 1; size > maxNames {
			names = append(names, "…")
			break
		}
		names = append(names, name)
	}
	return withLead(names, "、", m.place+m.text)
}

func withLead(words []string, sep, text string) string {
	if len(words) == 0 {
		return text
	}
	return strings.Join(words, sep) + " \n\n" + text
}

func usableID(id string) bool {
	return id != "" && len(id) <= 64 && !strings.EqualFold(id, "all") && !strings.ContainsFunc(id, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("@[]()<>*`", r)
	})
}

func safeNick(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune("@＠[]()<>*`#!|\\_~", r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
	return value.Clip(value.OneLine(value.Clean(s)), 20)
}

// titleOf is the text of the notification: the first words, without Markdown.
func titleOf(text string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			continue
		}
		s := strings.Map(func(r rune) rune {
			if strings.ContainsRune("#>*`_[]()!~|", r) || unicode.IsControl(r) && r != '\t' {
				return -1
			}
			return r
		}, line)
		s = strings.TrimLeft(value.OneLine(s), "-+ ")
		if s != "" {
			return value.Clip(s, 20)
		}
	}
	return "回复"
}

// escapedLen is a character's length inside JSON of encode.
func escapedLen(r rune, size int) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
		return 2
	case r < 0x20 || r == '\u2028' || r == '\u2029' || r == utf8.RuneError && size == 1:
		return 6
	}
	return size
}

// markdownBody is a message as JSON.
type markdownBody struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}
