package chaos

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/cmd/lab/rig"
	"ebb/sessions"
	"ebb/sql/inspect"
	"ebb/sql/sqltest"
)

// theTime is when the evidence of these tests begins.
var theTime = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return theTime.Add(time.Duration(ms) * time.Millisecond) }

const (
	groupA sessions.Key = "robot/cid-a"
	groupB sessions.Key = "robot/cid-b"
)

// wholeEvidence is the evidence of a run in which every promise was kept. The first session has a turn of two messages
// and one of a command. The second has an answer, an apology and a message that was set aside. One of two processes was
// killed.
func wholeEvidence() *evidence {
	said := func(mark, place string, ms int) remark {
		return remark{mark: mark, place: place, thread: place, sent: at(ms), pushed: at(ms), acked: at(ms + 10)}
	}
	e := &evidence{
		said: map[string]remark{
			"q0000001": said("q0000001", "cid-a", 0), "q0000002": said("q0000002", "cid-a", 100), "q0000003": said("q0000003", "cid-a", 200),
			"q0000004": said("q0000004", "cid-b", 0), "q0000005": said("q0000005", "cid-b", 500), "q0000006": said("q0000006", "cid-b", 600),
		},
		standing: []inspect.Standing{{Key: groupA, FlushedSeq: 3, LastSeq: 5, Compactions: 1, Flushes: 1}, {Key: groupB, LastSeq: 4}},
		facts:    []inspect.Kept{{Key: groupA, Content: "编号K000001的登录页在测试大厅走专线"}},
		terms:    []sessions.Lease{{Key: groupA, Owner: "g1-2-XYZ", Term: 3}, {Key: groupB, Owner: "g1-2-XYZ", Term: 2}},
		turns: []turnLine{
			{process: "g1-1", session: string(groupA), msgID: "q0000001", kind: "ask", term: 1, from: at(20), to: at(200)},
			{process: "g1-2", session: string(groupA), msgID: "q0000003", kind: "command", term: 3, from: at(3000), to: at(3500)},
			{process: "g1-1", session: string(groupB), msgID: "q0000004", kind: "ask", term: 2, from: at(20), to: at(100)},
		},
		online: map[string]time.Time{"g1-1": at(-1000), "g1-2": at(1000)},
		lives: map[string]life{
			"g1-1": {slot: "g1", started: at(-2000), killed: at(700)},
			"g2-1": {slot: "g2", apart: []rig.Interval{{From: at(610), To: at(620)}, {From: at(630), To: at(640)}, {From: at(650), To: at(660)}}},
			"g1-2": {slot: "g1", started: at(800), stopRequested: at(60_000), ended: at(62_000)},
		},
		accounts: []sessions.Restart{{Replica: "g1-1-ABC", Ending: sessions.Killed}, {Replica: "g1-2-XYZ", Ending: sessions.Clean}},
		again:    map[letterID]time.Time{{groupA, 1}: at(80_000)},
		unsure:   map[letterID]time.Time{},
	}
	fact := e.said["q0000001"]
	fact.fact = "编号K000001的登录页在测试大厅走专线"
	command := e.said["q0000003"]
	command.command = true
	e.said["q0000001"], e.said["q0000003"] = fact, command
	person := func(key sessions.Key, seq int64, mark string) inspect.Logged {
		l := inspect.Logged{Key: key, Seq: seq, Role: sessions.RoleUser, State: sessions.Done, MsgID: sessions.MessageID(mark), Content: mark}
		if seq == 0 {
			l.State = sessions.Dead
		}
		return l
	}
	bot := func(key sessions.Key, seq int64, text string) inspect.Logged {
		return inspect.Logged{Key: key, Seq: seq, Role: sessions.RoleAssistant, State: sessions.Done, Content: text}
	}
	e.log = []inspect.Logged{
		person(groupA, 1, "q0000001"), person(groupA, 2, "q0000002"), bot(groupA, 3, "q0000001 q0000002 周五"),
		person(groupA, 4, "q0000003"), bot(groupA, 5, "- 上下文：10%"),
		person(groupB, 1, "q0000004"), bot(groupB, 2, "q0000004 周五"), person(groupB, 3, "q0000005"), bot(groupB, 4, "模型服务现在很忙"),
		person(groupB, 0, "q0000006"),
	}
	for _, l := range []struct {
		key  sessions.Key
		text string
	}{
		{groupA, "q0000001 q0000002 周五"},
		{groupA, "- 上下文：10%"},
		{groupB, "q0000004 周五"},
		{groupB, "模型服务现在很忙"},
		{groupB, "放在一边"},
	} {
		place := strings.TrimPrefix(string(l.key), "robot/")
		e.letters = append(e.letters, inspect.Letter{Key: l.key, Conversation: sessions.ConversationID(place), Sent: true, Text: l.text})
		e.replies = append(e.replies, dingtalktest.Reply{Conversation: place, Text: "@u-li \n\n" + l.text})
	}
	return e
}

func TestCheckerFindsNothingWhereEverythingWasKept(t *testing.T) {
	t.Parallel()
	f := wholeEvidence().checkAll()
	if len(f.broken) > 0 {
		t.Errorf("found %q", f.broken)
	}
	got := fmt.Sprint(f.said, f.acked, f.answered, f.commands, f.apologies, f.dead, f.turns, f.facts, f.doubled)
	if want := "6 6 3 1 1 1 4 1 0"; got != want {
		t.Errorf("said, acked, answered, commands, apologies, dead, turns, facts, doubled: %s, want %s", got, want)
	}
}

// An answer that DingTalk refused several times may arrive after the next ones of its session.
func TestCheckerAllowsToPassARefusedAnswer(t *testing.T) {
	t.Parallel()
	for refusals, broken := range map[int]int{0: 1, 2: 1, 3: 0} {
		e := wholeEvidence()
		e.log = append(e.log, inspect.Logged{Key: groupA, Seq: 6, Role: sessions.RoleUser, State: sessions.Done, MsgID: "q0000007", Content: "q0000007"},
			inspect.Logged{Key: groupA, Seq: 7, Role: sessions.RoleAssistant, State: sessions.Done, Content: "q0000007"})
		e.said["q0000007"] = remark{mark: "q0000007", place: "cid-a", thread: "cid-a", sent: at(900), pushed: at(900), acked: at(910)}
		e.letters = append(e.letters, inspect.Letter{Key: groupA, Conversation: "cid-a", Sent: true, Text: "q0000007"})
		e.letters[0].Refusals = refusals
		e.replies = append([]dingtalktest.Reply{{Conversation: "cid-a", Text: "q0000007"}}, e.replies...)
		if f := e.checkAll(); len(f.broken) != broken {
			t.Errorf("after %d refusals found %q, want %d", refusals, f.broken, broken)
		}
	}
}

// openCard is a card without an end.
var openCard = dingtalktest.Card{TrackID: "c1", Conversation: "cid-a", State: dingtalktest.CardInputting, Delivered: at(100), Content: "q0000001"}

// arrive adds a reply.
func (e *evidence) arrive(place, text string) {
	e.replies = append(e.replies, dingtalktest.Reply{Conversation: place, Text: text})
}

// overlapped are two model calls of one conversation at one time.
func overlapped(first, second string) []overlap {
	return []overlap{{"cid-a", modelCall{first, at(100), at(100), at(300)}, modelCall{second, at(200), at(200), at(400)}}}
}

// Each line breaks one promise; the checker must say that, and nothing else.
func TestCheckerFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spoil func(*evidence)
		want  string
	}{
		{"lost after its ack", func(e *evidence) { e.cut(5, 7) }, "message q0000004 was acknowledged and is not in the log"},
		{"in the log twice", func(e *evidence) { e.log = append(e.log, e.log[9]) }, "message q0000006 is in the log twice"},
		{"a message without a sender", func(e *evidence) { delete(e.said, "q0000006") }, "message q0000006 is in the log, and no member sent it"},
		{"in the wrong session", func(e *evidence) { e.log[9].Key = groupA; e.letters[4].Key = groupA }, "message q0000006, said in cid-b, is in session robot/cid-a"},
		{"taken too late", func(e *evidence) {
			e.change("q0000002", func(r *remark) { r.sent, r.pushed, r.acked = at(-100), at(-100), at(-50) })
		}, "message q0000002 of session robot/cid-a was acknowledged before q0000001 was said, and taken after it"},
		{"not answered", func(e *evidence) { e.log[8].Content, e.letters[3].Text = "", "" }, "message q0000005 was taken and not answered"},
		{"left out of an answer", func(e *evidence) { e.reword(2, 0, "q0000001 周五") }, "message q0000002 is in a turn that does not answer it"},
		{"answered in two turns", func(e *evidence) { e.reword(8, 3, "q0000005 q0000004 周六") }, "message q0000004 was answered in a turn that did not take it"},
		{"a command answered as talk", func(e *evidence) { e.reword(4, 1, "q0000003 周五") }, "the command q0000003 was answered as if it were talk"},
		{"sent to the wrong place", func(e *evidence) { e.arrive("cid-b", "q0000002") }, "the answer to q0000002, said in cid-a, was sent to cid-b"},
		{"an answer to no message", func(e *evidence) { e.replies[0].Text += " q0000009" }, "an answer to q0000009 was sent, a message that no member sent"},
		{"never sent", func(e *evidence) { e.replies = slices.Delete(e.replies, 2, 3) }, `1 replies to cid-b were marked as sent and 0 arrived: "q0000004 周五"`},
		{"an apology never sent", func(e *evidence) { e.replies = slices.Delete(e.replies, 3, 4) }, `1 replies to cid-b were marked as sent and 0 arrived: "模型服务现在很忙"`},
		{"two apologies, one sent", func(e *evidence) { e.letters = append(e.letters, e.letters[3]) }, `2 replies to cid-b were marked as sent and 1 arrived`},
		{"no reply left", func(e *evidence) { e.letters = slices.Delete(e.letters, 1, 2) }, "the answer of session robot/cid-a to [q0000003] left no reply"},
		{"no notice of a message set aside", func(e *evidence) { e.letters = e.letters[:4] }, "session robot/cid-b set 1 messages aside and notified 0 people"},
		{"sent in the wrong order", func(e *evidence) {
			e.log = append(e.log[:5:5], append([]inspect.Logged{
				{Key: groupA, Seq: 6, Role: sessions.RoleUser, MsgID: "q0000007", Content: "q0000007"}, {Key: groupA, Seq: 7, Role: sessions.RoleAssistant, Content: "q0000007"},
			}, e.log[5:]...)...)
			e.said["q0000007"] = remark{mark: "q0000007", place: "cid-a", thread: "cid-a", sent: at(900), pushed: at(900)}
			e.letters = append(e.letters, inspect.Letter{Key: groupA, Conversation: "cid-a", Sent: true, Text: "q0000007"})
			e.replies = append([]dingtalktest.Reply{{Conversation: "cid-a", Text: "q0000007"}}, e.replies...)
		}, "the answer to message q0000007 was sent before an earlier one of session robot/cid-a"},
		{"doubled and not counted", func(e *evidence) { e.replies = append(e.replies, e.replies[2]) }, `a reply to cid-b arrived 2 times in place of 1, and no gateway said that it may: "q0000004 周五"`},
		{"twice in one reply", func(e *evidence) { e.replies[2].Text += " q0000004" }, "a reply to cid-b has the answer to q0000004 twice"},
		{"a fact not flushed", func(e *evidence) { e.facts = nil }, "the fact of message q0000001 was flushed and is in memory 0 times"},
		{"a fact flushed twice", func(e *evidence) { e.facts = append(e.facts, e.facts...) }, "the fact of message q0000001 was flushed and is in memory 2 times"},
		{"a gap", func(e *evidence) { e.gaps = []string{"session robot/cid-a: the summary of 5 to 9 follows 3"} }, "summaries do not tile the log: session robot/cid-a"},
		{"two turns at a time", func(e *evidence) { e.turns[0].to = e.turns[1].to }, "the turn of q0000003 (g1-2) began 500ms before that of q0000001 (g1-1) had ended"},
		{"an older term later", func(e *evidence) { e.turns[0].term, e.turns[1].term = 3, 2 }, "session robot/cid-a: the turn of q0000003 was committed under term 2, after one of term 3"},
		{"one term, two processes", func(e *evidence) { e.turns[0].term = 3 }, "g1-1 and g1-2 both committed under term 3"},
		{"the stored term fell", func(e *evidence) { e.terms[0].Term = 2 }, "a turn was committed under term 3, and the stored one is 2"},
		{"two at the model", func(e *evidence) { e.both = overlapped("g1-1", "g1-2") }, "cid-a has two turns at a time: g1-2 asked 100ms after g1-1"},
		{"two at the model while an erasure is under way elsewhere", func(e *evidence) {
			e.both = overlapped("g1-1", "g1-2")
			e.erased = []erasure{{touched: []string{"cid-b"}, begun: at(150), receipt: at(180)}}
		}, "cid-a has two turns at a time: g1-2 asked 100ms after g1-1"},
		{"a panic", func(e *evidence) { e.panics = []string{"g1-1: panic: nil map"} }, "a panic: g1-1: panic: nil map"},
		{"lost by its own account", func(e *evidence) { e.accounts[1].Figures.Lost = 2 }, "process g1-2 has lost 2 messages"},
		{"an open account", func(e *evidence) { e.accounts[0].Ending = sessions.Running }, "the account of g1-1 is open, which has ended"},
		{"a clean end that nobody asked for", func(e *evidence) { e.accounts[0].Ending = sessions.Clean }, "the account of g1-1 says that it stopped cleanly"},
		{"no account", func(e *evidence) { e.accounts = e.accounts[:1] }, "process g1-2 served for 1m1s and has no account"},
		{"a message that waits", func(e *evidence) { e.log[9].State, e.letters = sessions.Pending, e.letters[:4] }, "message q0000006 is in the log, and no turn took it"},
		{"a reply that waits", func(e *evidence) { e.open.Replies = 1 }, "1 replies are still to be sent"},
		{"a reply given up", func(e *evidence) { e.open.GivenUp = 1 }, "1 replies were given up"},
		{"a card that stays open", func(e *evidence) { e.cards = []dingtalktest.Card{openCard} }, `card c1 in cid-a stays inputting: "q0000001"`},
		{"a mark that stays", func(e *evidence) { e.marks = []string{"m1"} }, "thinking marks are left on m1"},
		{"a card that is open in the database", func(e *evidence) { e.open.Cards = 1 }, "1 cards are still open in the database"},
		{"the protocol of cards", func(e *evidence) {
			e.strange = []dingtalktest.Violation{{Kind: dingtalktest.CardAfterFinalize, Time: at(60_000)}}
		}, "protocol: "},
		{"set aside for nothing", func(e *evidence) { delete(e.lives, "g2-1") }, "message q0000006 was set aside after 1 troubles, want 3 at least"},
		{"set aside by one in no trouble", func(e *evidence) {
			e.lives["g1-3"] = life{slot: "g1", started: at(900), stopRequested: at(5000), ended: at(6000)}
			e.asked = []inquiry{{"g1-3", []string{"q0000006"}, at(1000)}}
		}, "message q0000006 was set aside, and g1-3, which asked for its answer, was in no trouble"},
		{"erased words sent later", func(e *evidence) {
			e.erased = []erasure{{kind: "forget last", words: []string{"K000009"}, begun: at(100), receipt: at(899_900)}}
			e.replies = append(e.replies, dingtalktest.Reply{Conversation: "cid-a", Text: "K000009", Time: at(900_000)})
		}, "forget last: K000009 was erased and sent 100ms later to cid-a"},
		{"erased words joined to the receipt", func(e *evidence) {
			e.erased = []erasure{{kind: "forget last", words: []string{"K000009"}, begun: at(100), receipt: at(900_000)}}
			e.replies = append(e.replies, dingtalktest.Reply{Conversation: "cid-a", Text: "K000009\n\n---\n\n已删除", Time: at(900_000)})
		}, "forget last: K000009 was erased and sent 0s later to cid-a"},
		{"erased words asked later", func(e *evidence) {
			e.erased = []erasure{{kind: "forget me", words: []string{"K000009"}, begun: at(100), receipt: at(200)}}
			e.requests = map[string]wordSeen{"K000009": {"g1-2", at(60_200)}}
		}, "forget me: K000009 was erased and g1-2 asked a model with it 1m0s later"},
		{"erased words stored", func(e *evidence) {
			e.erased = []erasure{{kind: "forget fact", words: []string{"K000009"}, begun: at(100), receipt: at(200)}}
			e.remains = map[string][]string{"K000009": {"session_summaries"}}
		}, "forget fact: K000009 was erased and is still in session_summaries"},
		{"an erasure without a receipt", func(e *evidence) {
			e.erased = []erasure{{kind: "forget last", words: []string{"K000009"}, begun: at(100), heard: "模型服务现在很忙"}}
		}, `forget last of [K000009], asked for at 09:00:00, has no receipt; the last reply was "模型服务现在很忙"`},
		{"another message erased", func(e *evidence) { e.log[0].Content = sessions.ErasedText }, "message q0000001 of session robot/cid-a was not to be erased"},
		{"the protocol", func(e *evidence) { e.strange = []dingtalktest.Violation{{Kind: dingtalktest.AckTwice}} }, "protocol: "},
		{"seen before the end", func(e *evidence) { e.broken = []string{"gateway g1-1 ended by itself"} }, "gateway g1-1 ended by itself"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := wholeEvidence()
			tt.spoil(e)
			if got := e.checkAll().broken; len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Errorf("found %q, want only %q", got, tt.want)
			}
		})
	}
}

// Words on a card count from the first frame with them, unless several processes asked for the answer.
func TestCheckerSeesWordsOnACard(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		worded  time.Time
		process []string
		found   bool
	}{
		{at(900), []string{"g1-2"}, true}, {at(1100), []string{"g1-2"}, false}, {at(900), []string{"g1-1", "g1-2"}, false},
	} {
		e := wholeEvidence()
		e.log = slices.Insert(e.log, 5,
			inspect.Logged{Key: groupA, Seq: 6, Role: sessions.RoleUser, State: sessions.Done, MsgID: "q0000007", Content: "q0000007"},
			inspect.Logged{Key: groupA, Seq: 7, Role: sessions.RoleAssistant, State: sessions.Done, Content: "q0000007"})
		e.said["q0000007"] = remark{mark: "q0000007", place: "cid-a", thread: "cid-a", sent: at(900), pushed: at(900), wordedAt: tt.worded}
		for _, process := range tt.process {
			e.asked = append(e.asked, inquiry{process: process, marks: []string{"q0000007"}, at: at(900)})
		}
		e.letters = append(e.letters, inspect.Letter{Key: groupA, Conversation: "cid-a", Sent: true, Text: "q0000007"})
		e.replies[0].Time = at(1000)
		e.replies = append(e.replies, dingtalktest.Reply{Conversation: "cid-a", Text: "q0000007", Via: "card", Time: at(1200)})
		broken := strings.Join(e.checkAll().broken, "\n")
		if found := strings.Contains(broken, "the answer to message q0000007 showed words before an earlier one of session robot/cid-a"); found != tt.found || !found && broken != "" {
			t.Errorf("words at %s, asked by %v: found %q", tt.worded, tt.process, broken)
		}
	}
}

// A process that was cut off, or ended in the middle of a question, broke no promise.
func TestCheckerExcuses(t *testing.T) {
	t.Parallel()
	both := []overlap{{"cid-a", modelCall{"g1-1", at(100), at(100), at(300)}, modelCall{"g1-2", at(-400), at(200), at(400)}}}
	with := func(process string, change func(*life)) func(*evidence) {
		return func(e *evidence) { l := e.lives[process]; change(&l); e.lives[process] = l }
	}
	for name, excuse := range map[string]func(*evidence){
		"the first stood still":         with("g1-1", func(l *life) { l.apart = []rig.Interval{{From: at(150), To: at(180)}} }),
		"the second stood still before": with("g1-2", func(l *life) { l.apart = []rig.Interval{{From: at(-300), To: at(-100)}} }),
		"the first was killed":          with("g1-1", func(l *life) { l.killed = at(150) }),
		"the first left at once":        with("g1-1", func(l *life) { l.killed, l.stopRequested, l.twice = time.Time{}, at(150), true }),
		"an erasure takes the session": func(e *evidence) {
			e.erased = []erasure{{touched: []string{"cid-b", "cid-a"}, begun: at(150), receipt: at(180)}}
		},
		"no database": func(e *evidence) { e.away = []rig.Interval{{From: at(0), To: at(1000)}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := wholeEvidence()
			e.both = both
			excuse(e)
			if got := e.checkAll().broken; len(got) > 0 {
				t.Errorf("found %q", got)
			}
		})
	}
}

// Cards that ended, and one that was never delivered, break no promise. A gateway that stood still may be late, and so may be one that
// does not know whether a card has ended.
func TestCheckerExcusesCards(t *testing.T) {
	t.Parallel()
	e := wholeEvidence()
	e.cards = []dingtalktest.Card{
		{TrackID: "c1", State: dingtalktest.CardFinished, Delivered: at(100)},
		{TrackID: "c2", State: dingtalktest.CardFailed, Delivered: at(200)},
		{TrackID: "c3", State: dingtalktest.CardFailed},
	}
	e.strange = []dingtalktest.Violation{
		{Kind: dingtalktest.CardCallbackSlow, Time: at(700)}, {Kind: dingtalktest.CardAfterFinalize, Conversation: "cid-a", Time: at(60_000)},
		{Kind: dingtalktest.CardAfterFinalize, Conversation: "cid-b", TrackID: "c4", Time: at(90_000)},
	}
	e.letters[2].ID, e.letters[2].Nonce = 7, "c4"
	e.again[letterID{groupB, 7}] = at(80_000)
	e.erased = []erasure{{touched: []string{"cid-a"}, begun: at(50_000), receipt: at(58_000)}}
	if f := e.checkAll(); len(f.broken) > 0 || f.cards != 1 || f.closed != 1 {
		t.Errorf("finished %d, closed %d, found %q", f.cards, f.closed, f.broken)
	}
}

// A message that waited when its person was forgotten is set aside without a word: no letter is due.
func TestCheckerExcusesAnErasedMessageThatWaited(t *testing.T) {
	t.Parallel()
	e := wholeEvidence()
	e.change("q0000006", func(r *remark) { r.wiped = true })
	e.log[9].Content, e.letters = sessions.ErasedText, e.letters[:4]
	delete(e.lives, "g2-1") // no trouble
	if f := e.checkAll(); len(f.broken) > 0 || f.dead != 0 {
		t.Errorf("found %d dead letters and %q", f.dead, f.broken)
	}
}

// The session of a member who was forgotten begins again at its first term; the others of the group stay.
func TestTurnsOfDeletedSessionsAreLeftOut(t *testing.T) {
	t.Parallel()
	e := &evidence{
		erased: []erasure{{kind: "forget me", gone: []string{"cidDirectu-li==", "cid-a u-li"}}},
		turns:  []turnLine{{session: "robot/cid-a/u-li"}, {session: "robot/cid-a/u-wang"}, {session: "robot/cidDirectu-li=="}, {session: "robot/cid-a"}},
	}
	e.dropErased()
	var left []string
	for _, l := range e.turns {
		left = append(left, l.session)
	}
	if want := []string{"robot/cid-a/u-wang", "robot/cid-a"}; !slices.Equal(left, want) {
		t.Errorf("turns are left of the sessions %q, want %q", left, want)
	}
}

// cut takes lines out of the log, and the letter and the reply that they left.
func (e *evidence) cut(from, to int) {
	text := e.log[to-1].Content
	e.log = slices.Delete(e.log, from, to)
	e.letters = slices.DeleteFunc(e.letters, func(l inspect.Letter) bool { return l.Text == text })
	e.replies = slices.DeleteFunc(e.replies, func(r dingtalktest.Reply) bool { return strings.HasSuffix(r.Text, text) })
}

// reword changes an answer: in the log, as it was left and as it was sent.
func (e *evidence) reword(line, letter int, text string) {
	e.log[line].Content, e.letters[letter].Text, e.replies[letter].Text = text, text, text
}

func (e *evidence) change(mark string, f func(*remark)) {
	r := e.said[mark]
	f(&r)
	e.said[mark] = r
}

func TestPlanIsTheSeeds(t *testing.T) {
	t.Parallel()
	opt := Command{For: 5 * time.Minute, Seed: 7, Replicas: 3, Every: 2 * time.Second, Erase: 4 * time.Second, Remind: 2 * time.Second}
	first, again := planFaults(opt), planFaults(opt)
	if !slices.Equal(first, again) {
		t.Error("two plans of one seed differ")
	}
	opt.Seed = 8
	if slices.Equal(first, planFaults(opt)) {
		t.Error("two seeds have the same plan")
	}
	if slices.ContainsFunc(first, func(x fault) bool { return strings.HasPrefix(x.kind, "card ") }) {
		t.Error("a run without cards has troubles of cards")
	}
	opt.Cards = true
	first = planFaults(opt)
	kinds := map[string]bool{}
	for _, x := range first {
		kinds[x.kind] = true
		if x.at <= 0 || x.at >= opt.For || x.slot < 0 || x.slot >= opt.Replicas || x.d <= 0 {
			t.Errorf("a trouble that can't be made: %+v", x)
		}
	}
	if len(kinds) < (len(faultKinds)+len(cardKinds)+len(erasureKinds)+len(reminderKinds))*2/3 {
		t.Errorf("%d troubles are of %d kinds only", len(first), len(kinds))
	}
}

// The link is silent while it is cut, passes what was said meanwhile when it is whole, and resets where it forgets.
func TestChaosLink(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	server, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() { // an echo
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	link, err := sqltest.NewLink(t.Context(), func() string { return socket })
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	c, err := net.Dial("tcp", link.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	echo := func(word string) error {
		if _, err := io.WriteString(c, word); err != nil {
			return err
		}
		got := make([]byte, len(word))
		_, err := io.ReadFull(c, got)
		return errors.Join(err, map[bool]error{false: errors.New("another word")}[string(got) == word])
	}
	if err := echo("whole"); err != nil {
		t.Fatal(err)
	}
	cut := time.Now()
	link.Cut(200*time.Millisecond, false)
	if err := echo("cut"); err != nil || time.Since(cut) < 200*time.Millisecond {
		t.Errorf("an echo through a cut link after %s: %v", time.Since(cut), err)
	}
	slow := time.Now()
	link.Slow(100*time.Millisecond, time.Minute)
	if err := echo("slow"); err != nil || time.Since(slow) < 100*time.Millisecond {
		t.Errorf("an echo through a slow link after %s: %v", time.Since(slow), err)
	}
	link.Cut(time.Millisecond, true)
	for err == nil { // messages before the end may fail
		err = echo("forgotten")
	}
}

func TestSoakResult(t *testing.T) {
	t.Parallel()
	steady := func() []sample {
		var out []sample
		for i := 1; i <= 40; i++ {
			out = append(out, sample{
				at: time.Duration(i) * time.Minute, turns: 1200 * i,
				gateways: map[string]figures{"g1-1": {resident: float64(60+i%5) * mega, goroutines: 40 + i%7, files: 20}},
				tables:   map[string]inspect.TableSize{"outbox": {Bytes: int64(i) * mega, Live: int64(i) * 1000, Dead: 6000}},
			})
		}
		return out
	}
	for _, tt := range []struct {
		name  string
		spoil func(i int, s *sample, g *figures, o *inspect.TableSize)
		want  string
	}{
		{"flat", func(int, *sample, *figures, *inspect.TableSize) {}, ""},
		{"memory grows", func(i int, _ *sample, g *figures, _ *inspect.TableSize) { g.resident += float64(2*i) * mega }, "g1-1: RSS"},
		{"goroutines leak", func(i int, _ *sample, g *figures, _ *inspect.TableSize) { g.goroutines += i }, "g1-1: goroutines"},
		{"files leak", func(i int, _ *sample, g *figures, _ *inspect.TableSize) { g.files += i }, "g1-1: open files"},
		{"a table swells", func(i int, _ *sample, _ *figures, o *inspect.TableSize) { o.Bytes += int64(i*i) * mega / 10 }, "outbox: grows"},
		{"nobody cleans up", func(i int, _ *sample, _ *figures, o *inspect.TableSize) { o.Dead += max(0, int64(i-30)) * 10_000 }, "of its rows are dead"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			samples := steady()
			for i := range samples {
				s := &samples[i]
				g, o := s.gateways["g1-1"], s.tables["outbox"]
				tt.spoil(i+1, s, &g, &o)
				s.gateways["g1-1"], s.tables["outbox"] = g, o
			}
			lines, broken := judgeSoak(samples)
			if len(lines) != 5 {
				t.Errorf("looked at %q", lines)
			}
			if tt.want == "" && len(broken) > 0 || tt.want != "" && (len(broken) != 1 || !strings.Contains(broken[0], tt.want)) {
				t.Errorf("found %q, want %q", broken, tt.want)
			}
		})
	}
	if _, broken := judgeSoak(steady()[:3]); len(broken) != 1 {
		t.Errorf("three samples: %q, want a report of a soak too short", broken)
	}
}
