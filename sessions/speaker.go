package sessions

import (
	"strings"
	"unicode"
)

// Nicks can't forge or remove the mark: brackets are dropped.
const outsider = "［外部］"

// maxNick is in characters.
const maxNick = 40

// Outside reports whether a sender is from outside the organisation: DingTalk gives an encrypted id.
func Outside(id UserID) bool { return id == "" || strings.HasPrefix(string(id), "$:") }

// Speaker is a person's name for a model: Nick(id), or Nick［外部］ for people from outside. Only the id identifies: nicks
// are chosen freely, and can't imitate an id or the mark.
func Speaker(nick string, id UserID) string {
	nick = Nick(nick)
	switch {
	case Outside(id):
		return nick + outsider
	case nick == "":
		return string(id)
	}
	return nick + "(" + string(id) + ")"
}

// Nick is a nick for display: one line of bounded length without brackets, colons, control and invisible characters.
func Nick(nick string) string { return cleanLabel(nick, maxNick) }

// maxTitle is in characters.
const maxTitle = 60

// Title is a group's title for display, by the rules of [Nick]: members may choose it.
func Title(title string) string { return cleanLabel(title, maxTitle) }

func cleanLabel(nick string, most int) string {
	nick = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r): // bidi marks and joiners
			return -1
		case unicode.IsControl(r), unicode.In(r, unicode.Ps, unicode.Pe, unicode.Pi, unicode.Pf), strings.ContainsRune("<>＜＞:：﹕︰꞉∶ː", r):
			return ' '
		}
		return r
	}, nick)), " ")
	if rs := []rune(nick); len(rs) > most {
		return strings.TrimSpace(string(rs[:most])) + "…"
	}
	return nick
}

// Everyone is the id of a mention of all members.
const Everyone UserID = "@all"

// Speakers are the names of people for a model, by both of their ids.
type Speakers struct{ names, nicks map[UserID]string }

// NewSpeakers is for requests on events. It keeps no name when none of them mentions people.
func NewSpeakers(lists ...[]Event) (s Speakers) {
	for _, events := range lists {
		for _, e := range events {
			if own, quoted := mentioned(e); len(own)+len(quoted) > 0 {
				return Speakers{names: map[UserID]string{}, nicks: map[UserID]string{}}
			}
		}
	}
	return s
}

// Add notes the speaker of an event.
func (s Speakers) Add(e Event) {
	if s.names == nil || e.Role != RoleUser || e.SenderID == "" {
		return
	}
	ids := []UserID{e.SenderID}
	if e.Message != nil && e.Message.EncryptedID != "" {
		ids = append(ids, e.Message.EncryptedID)
	}
	for _, id := range ids {
		s.names[id], s.nicks[id] = Speaker(e.SenderNick, e.SenderID), e.SenderNick
	}
}

// mentioned are the people that a message and its quote mention.
func mentioned(e Event) (own, quoted []UserID) {
	if e.Message == nil || e.Content == ErasedText {
		return nil, nil
	}
	if q := e.Message.Quote; q != nil && q.Text != ErasedText {
		quoted = q.Mentioned
	}
	return e.Message.Mentioned, quoted
}

// Note names the people that a message and its quote mention, for the end of its text: DingTalk leaves their names out.
// Names that the text has are not repeated. A person who did not speak is named by the id.
func (s Speakers) Note(e Event) string {
	own, quoted := mentioned(e)
	var notes []string
	if names := s.unwritten(e, own); names != "" {
		notes = append(notes, "mentions "+names)
	}
	if names := s.unwritten(e, quoted); names != "" {
		notes = append(notes, "the quoted message mentions "+names)
	}
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, "; ") + ")"
}

// unwritten joins the names that the text of a message lacks.
func (s Speakers) unwritten(e Event, ids []UserID) string {
	var names []string
	for _, id := range ids {
		name, known := s.names[id]
		switch {
		case id == Everyone:
			name = "所有人"
		case !known:
			name = Speaker("", id)
		}
		nick := s.nicks[id]
		if strings.Contains(e.Content, "@"+name) || nick != "" && strings.Contains(e.Content, "@"+nick) {
			continue
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
