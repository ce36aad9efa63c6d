package chaos

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/wording"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
)

// reminderKinds are requests of members beside the faults, with faults of the API that brings reminders.
var reminderKinds = []chaosKind{
	{"remind once", 6, remindOnce},
	{"remind daily", 3, remindDaily},
	{"open api", 2, spoilOpenAPI},
}

// reminder is one that a member asked for.
type reminder struct {
	word  string // in its text, and in that of no other
	mark  string // the message that asked for it
	place string
	who   string    // name of the member
	daily time.Time // its first time; zero for a single reminder
}

type reminders struct {
	mu  sync.Mutex
	all []reminder
}

func (r *reminders) copyAll() []reminder {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// The words that erasures and reminders are followed by: numbers of facts and of reminders.
var markedWords = regexp.MustCompile(`[KR]\d{6}`)

// chaosZone is the zone of the gateways.
var chaosZone = time.UTC

const (
	longestDelay = 8  // seconds from the request of a single reminder to its time
	laterHours   = 12 // to the first time of a daily reminder that is not due in the run
)

// request has a member ask for a reminder. at is the first time of a daily one; zero for a single one after a delay.
func (r *reminders) request(talk *talkers, who rig.Person, place string, delay time.Duration, at time.Time, change func(*remark)) reminder {
	x := reminder{place: place, who: who.Name, daily: at}
	text := func(u *remark) string {
		x.word = "R" + u.mark[2:]
		when := fmt.Sprintf("%d秒后", int(delay.Seconds()))
		if !at.IsZero() {
			when = "每天" + at.In(chaosZone).Format("15:04")
		}
		return fmt.Sprintf("/提醒 %s %s 交周报", when, x.word)
	}
	x.mark = talk.sayAs(who, place, text, commandOf(change))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, x)
	return x
}

// remindOnce has a new member set a single reminder, which is due before the end of the run.
func remindOnce(w injector, _ context.Context, t fault) error {
	who := w.erasures.newPerson()
	delay := min(time.Duration(1+t.n%longestDelay)*time.Second, (w.opt.For - t.at).Truncate(time.Second))
	w.reminders.request(w.talk, who, w.talk.pickPlace(who, t.n), max(time.Second, delay), time.Time{}, nil)
	return nil
}

// remindDaily has a new member set a daily reminder for the next minute, if that is within the run.
func remindDaily(w injector, _ context.Context, t fault) error {
	who, now := w.erasures.newPerson(), time.Now()
	at := now.Truncate(time.Minute).Add(time.Minute)
	if at.Sub(now) > w.opt.For-t.at {
		at = at.Add(laterHours * time.Hour)
	}
	w.reminders.request(w.talk, who, w.talk.pickPlace(who, t.n), 0, at, nil)
	return nil
}

// pickPlace is a group, or now and then the private chat.
func (t *talkers) pickPlace(who rig.Person, n int) string {
	if n%4 == 0 {
		return dingtalktest.DirectConversation(who.ID)
	}
	return t.pickGroup(n)
}

// badOpenAPI are answers to the sending of messages, some of them after the message was shown.
var badOpenAPI = []string{"500", "502", "html", "truncated", "reset-before", "reset-after", "posted-timeout", "hang"}

func spoilOpenAPI(w injector, _ context.Context, t fault) error {
	f := dingtalktest.Fault{Route: dingtalktest.RouteGroupSend, Action: dingtalktest.Do(badOpenAPI[t.n%len(badOpenAPI)]), Count: 1 + t.n%2}
	if t.n%4 == 0 {
		f.Route = dingtalktest.RouteDirectSend
	}
	w.sim.AddFault(f)
	return nil
}

// scheduledIDs begin the ids of messages that gateways made: of schedules, of waits for approval that ended, of buttons that decide, and
// of notices to administrators.
var scheduledIDs = regexp.MustCompile(`^(schedule:|approval:|approve-|reject-|alarm:)`)

// isScheduled finds messages that no member wrote.
func isScheduled(id sessions.MessageID) bool { return scheduledIDs.MatchString(string(id)) }

// noticesOf begins the conversation of notices to an administrator, who reads them in the private chat.
const noticesOf = "notices:"

// placeNotices sets the private chats of notices as the places of their replies.
func (e *evidence) placeNotices() {
	for i, l := range e.letters {
		if person, is := strings.CutPrefix(string(l.Conversation), noticesOf); is {
			e.letters[i].Conversation = sessions.ConversationID(dingtalktest.DirectConversation(person))
		}
	}
}

// noteScheduled counts the messages of schedules, approvals and notices as said by their members, so that all checks of turns apply to them.
// Their ids are unique in their conversations alone.
func (e *evidence) noteScheduled() {
	for i := range e.log {
		l := &e.log[i]
		if l.Role != sessions.RoleUser || !isScheduled(l.MsgID) {
			continue
		}
		thread := threadIn(l.Key)
		place, _, _ := strings.Cut(thread, " ")
		l.MsgID = sessions.MessageID(fmt.Sprintf("%s in %s", l.MsgID, thread))
		mark := string(l.MsgID)
		e.said[mark] = remark{mark: mark, place: place, thread: thread, command: true, scheduled: true}
		e.scheduled++
	}
}

// shownIn counts the deliveries of a reminder in a text. In a group they begin with its member's name.
func (x reminder) shownIn(text string) int {
	const lead = "⏰ "
	return strings.Count(text, lead+x.word) + strings.Count(text, lead+wording.Attributed(x.who, x.word, "zh"))
}

// checkReminders: each reminder that a member knows to be set was delivered once at its time. It may arrive again only after
// DingTalk's answer was lost, which a gateway logs. Reminders of forgotten people are not judged here.
func (e *evidence) checkReminders(f *findings) {
	forgotten := map[string]bool{}
	for _, x := range e.erased {
		for _, word := range x.words {
			forgotten[word] = true
		}
	}
	for _, x := range e.reminders {
		if forgotten[x.word] {
			continue
		}
		set, arrivals := e.confirmed(x), e.arrivals(x, f)
		due := x.daily.IsZero() || x.daily.Before(e.ended) && e.said[x.mark].acked.Before(x.daily)
		if set {
			f.reminders++
		}
		f.reminded += len(arrivals)
		letters, again := e.lettersOf(x)
		switch {
		case set && due && len(arrivals) == 0:
			f.addBroken("reminder %s of %s in %s was set and not delivered", x.word, x.who, x.place)
		case len(arrivals) > 1 && again == 0:
			f.addBroken("reminder %s of %s arrived %d times in %s, and no gateway said that it may: %s", x.word, x.who, len(arrivals), x.place,
				strings.Join(arrivals, ", "))
		case letters > 1:
			f.addBroken("reminder %s of %s left %d replies", x.word, x.who, letters)
		}
	}
}

// confirmed reports whether the member read that the reminder is set.
func (e *evidence) confirmed(x reminder) bool {
	return slices.ContainsFunc(e.replies, func(r dingtalktest.Reply) bool {
		return slices.ContainsFunc(replyParts(r.Text), func(part string) bool {
			return strings.Contains(part, x.word) && strings.Contains(part, "提醒 #")
		})
	})
}

// arrivals describes the deliveries of a reminder. All of them must be in its conversation.
func (e *evidence) arrivals(x reminder, f *findings) (all []string) {
	for _, r := range e.replies {
		here := x.shownIn(r.Text)
		if here > 0 && r.Conversation != x.place {
			f.addBroken("reminder %s of %s in %s was sent to %s", x.word, x.who, x.place, r.Conversation)
		}
		for range here {
			all = append(all, describeReply(r))
		}
	}
	return all
}

// lettersOf counts the replies with a reminder, and those of them that a gateway sent again by its log. An erased reply may be one
// of the latter.
func (e *evidence) lettersOf(x reminder) (n, again int) {
	for _, l := range e.letters {
		has := x.shownIn(l.Text) > 0
		if has {
			n++
		}
		if !e.again[letterID{l.Key, l.ID}].IsZero() && (has || string(l.Conversation) == x.place && isWiped(l.Text)) {
			again++
		}
	}
	return n, again
}

// replyParts are the replies that one message joins.
func replyParts(text string) []string { return strings.Split(text, "\n\n---\n\n") }
