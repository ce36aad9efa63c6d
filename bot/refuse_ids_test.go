package bot_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/access"
	"ebb/bot/bottest"
	"ebb/memory"
	"ebb/sessions"
)

// A denied person stays refused by whichever of their ids a frame carries, also if all frames with both were refused. An id that two
// people have counts for each of them.
func TestDenialHoldsForEachID(t *testing.T) {
	t.Parallel()
	both := func(m *sessions.Message) { m.EncryptedID = "$:eve" }
	staffed := func(m *sessions.Message) {}
	encrypted := func(m *sessions.Message) { m.SenderID, m.StaffID, m.EncryptedID = "$:eve", "", "$:eve" }
	stranger := func(m *sessions.Message) { m.SenderID, m.StaffID, m.EncryptedID, m.External = "$:eve", "", "", true }
	shared := func(m *sessions.Message) { m.SenderID, m.StaffID, m.EncryptedID = "u-other", "u-other", "$:eve" }
	for name, tt := range map[string]struct {
		deny   string
		before []func(*sessions.Message) // frames before the last one
		last   func(*sessions.Message)
		served int // frames
	}{
		"by staff id, then without it":         {"u-eve", []func(*sessions.Message){both}, encrypted, 0},
		"by staff id, then as a stranger":      {"u-eve", []func(*sessions.Message){both}, stranger, 0},
		"by encrypted id, then without it":     {"$:eve", []func(*sessions.Message){both}, staffed, 0},
		"by encrypted id, without it at first": {"$:eve", nil, staffed, 1}, // the pair is unknown
		"an id that two people had":            {"u-eve", []func(*sessions.Message){both, shared}, encrypted, 1},
		"another person":                       {"u-mallory", []func(*sessions.Message){both}, encrypted, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) {
					c.Access = &access.Rules{Groups: []string{access.Everyone}, People: []string{access.Everyone}, External: true, Deny: []string{tt.deny}}
				}})
				for i, change := range append(tt.before, tt.last) {
					m := bottest.Said(fmt.Sprint("m", i), "eve", fmt.Sprint("hello ", i))
					change(&m)
					w.Post(m)
					bottest.After(time.Minute)
				}
				bottest.Want(t, "frames that were answered by a model", len(w.Model.Asked), tt.served)
			})
		})
	}
}

// An erasure deletes the ids of a denied person. Their next refused frame with both stores them again, and one with a single id stays
// refused.
func TestDenialOutlivesAnErasure(t *testing.T) {
	t.Parallel()
	p := emptyPlace(t)
	a := p.run("a", func(r *replica, c *bot.Config) {
		echo(r)
		c.Access = &access.Rules{Groups: []string{access.Everyone}, People: []string{access.Everyone}, External: true, Deny: []string{"u-eve"}}
	})
	known := func() int { return one[int](t, p.db(), "SELECT count(*) FROM sender_ids WHERE staff_id = 'u-eve'") }
	post := func(id string, only bool) {
		m := bottest.Said(id, "eve", "hello")
		m.EncryptedID = "$:eve"
		if only {
			m.SenderID, m.StaffID = "$:eve", ""
		}
		a.post(m)
	}
	post("m1", false)
	if _, err := p.reader().Erasure.ForgetPerson(t.Context(), memory.Forget{Person: "u-eve"}); err != nil {
		t.Fatal(err)
	}
	bottest.Want(t, "pairs of ids after the erasure", known(), 0)
	post("m2", false)
	bottest.Want(t, "pairs of ids after a frame with both", known(), 1)
	post("m3", true)
	bottest.Want(t, "messages that were stored", one[int](t, p.db(), "SELECT count(*) FROM dingtalk_session_events WHERE sender_id IN ('u-eve', '$:eve')"), 0)
}

// The frames of a flood store the ids of a refused sender once in a while. Another pair of ids is stored at once, and so is one whose
// first write failed.
func TestFloodLearnsAPairOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) {
			c.Access = &access.Rules{Groups: []string{access.Everyone}, People: []string{"u-bob"}}
		}})
		n := 0
		post := func(who string) error {
			n++
			m := bottest.Said(fmt.Sprint("m", n), who, "hello")
			m.EncryptedID = sessions.UserID("$:" + who)
			return w.Wire.Accept(t.Context(), m)
		}
		floods := func(who string, learnt int) {
			t.Helper()
			for range 50 {
				if err := post(who); err != nil {
					t.Fatal(err)
				}
			}
			bottest.Want(t, "writes after a flood of "+who, w.Store.Called("learn"), learnt)
		}
		floods("eve", 1)
		floods("mallory", 2)
		bottest.After(bot.LearntFor + time.Second)
		floods("eve", 3)
		w.Store.Fail(bottest.Times(1, "learn", errors.New("cut")))
		if err := post("trudy"); err == nil {
			t.Error("a frame whose ids are not stored was acknowledged")
		}
		floods("trudy", 5)
		bottest.Want(t, "frames that were answered by a model", len(w.Model.Asked), 0)
	})
}

// A person outside the allowed ones stays outside under each of their ids, and an allowed one is known by the other id.
func TestAllowedPeopleAreKnownByBothIDs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) {
			c.Access = &access.Rules{Groups: []string{"c2"}, People: []string{"u-bob"}}
		}})
		post := func(id, who string, staff bool, group sessions.ConversationID) {
			m := bottest.Said(id, who, "hello "+id)
			m.EncryptedID, m.ConversationID = sessions.UserID("$:"+who), group
			if !staff {
				m.SenderID, m.StaffID = m.EncryptedID, ""
			}
			w.Post(m)
			bottest.After(time.Minute)
		}
		post("m1", "bob", true, "c1") // refused for the group
		post("m2", "bob", false, "c2")
		bottest.Want(t, "answers to the allowed person", len(w.Model.Asked), 1)
		post("m3", "eve", true, "c2")
		post("m4", "eve", false, "c2")
		bottest.Want(t, "answers after the other one wrote", len(w.Model.Asked), 1)
	})
}
