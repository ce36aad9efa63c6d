package bot_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/wording"
	"ebb/memory"
	"ebb/sessions"
)

// dyingRights erases, and ends the process before its turn commits.
type dyingRights struct {
	memory.Erasures
	die func()
}

func (d *dyingRights) ForgetMessage(ctx context.Context, event int64, from memory.Asking) (memory.Forgotten, error) {
	if _, err := d.Erasures.ForgetMessage(ctx, event, from); err != nil {
		return memory.Forgotten{}, err
	}
	d.die()
	return memory.Forgotten{}, bottest.ErrAway
}

func (d *dyingRights) ForgetPerson(ctx context.Context, f memory.Forget) (memory.Forgotten, error) {
	if _, err := d.Erasures.ForgetPerson(ctx, f); err != nil {
		return memory.Forgotten{}, err
	}
	d.die()
	return memory.Forgotten{}, bottest.ErrAway
}

// The receipt of /forget me reaches a private chat by either way, also where the process ends before its turn commits: the
// session webhook may expire before it is sent. No row names the person after that.
func TestReceiptOfForgetMeCanBeSent(t *testing.T) {
	t.Parallel()
	private := func(id, words string) sessions.Message {
		m := bottest.Said(id, "alice", words)
		m.ConversationID, m.ConversationType, m.Webhook, m.WebhookExpires = "alice", sessions.Private, "https://oapi/"+id, time.Now().Add(time.Hour)
		return m
	}
	for name, crash := range map[string]bool{"one process": false, "after a crash": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			r := p.run("a", func(r *replica, c *bot.Config) {
				if c.Rights, c.Erasures = r.store.Rights, r.store.Erasure; crash {
					c.Rights, c.Erasures = r.store.Rights, &dyingRights{Erasures: r.store.Erasure, die: func() { r.die() }}
				}
			})
			for _, m := range []sessions.Message{private("m1", "My desk is in room 7."), private("m2", "/forget me")} {
				r.post(m)
				r.settle()
			}
			r.post(private("m3", "/forget me yes"))
			if crash {
				await(t, "the process is dead", r.isDead)
				r.stop()
				p.forget("a")
				r = p.run("b", func(r *replica, c *bot.Config) { c.Rights, c.Erasures = r.store.Rights, r.store.Erasure })
			}
			r.settle()
			all := r.wire.Sends()
			to := all[len(all)-1].Reply.Target
			bottest.Want(t, "the person it is sent to", to.StaffID, "u-alice")
			bottest.Want(t, "the webhook", to.Webhook, "https://oapi/m3")
			bottest.Want(t, "rows that name the person", one[int](t, p.db(), `SELECT
				(SELECT count(*) FROM outbox WHERE target::text LIKE '%u-alice%') +
				(SELECT count(*) FROM dingtalk_session_events e WHERE e::text LIKE '%u-alice%')`), 0)
		})
	}
}

// The process ends between the erasure of /forget last and the commit of its turn. The repeated turn erases no other message.
func TestForgetLastAfterACrashErasesOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := p.run("a", func(r *replica, c *bot.Config) {
		c.Rights, c.Erasures = r.store.Rights, &dyingRights{Erasures: r.store.Erasure, die: func() { r.die() }}
	})
	a.post(bottest.Said("m1", "alice", "The release is on Friday."))
	a.settle()
	a.post(bottest.Said("m2", "alice", "The password is swordfish."))
	a.settle()
	a.post(bottest.Said("m3", "alice", "/忘记上一条"))
	await(t, "the process is dead", a.isDead)
	a.stop()
	p.forget("a")
	b := p.run("b", func(r *replica, c *bot.Config) { c.Rights, c.Erasures = r.store.Rights, r.store.Erasure })
	b.settle()
	count := func(words string) int {
		return one[int](t, p.db(), "SELECT count(*) FROM dingtalk_session_events WHERE content LIKE '%' || $1 || '%'", words)
	}
	bottest.Want(t, "the earlier message", count("Friday"), 1)
	bottest.Want(t, "the erased message", count("swordfish"), 0)
	bottest.Want(t, "the reply", one[string](t, p.db(), "SELECT body FROM outbox ORDER BY id DESC LIMIT 1"), wording.Say(wording.ForgotLastBefore, "zh"))
}

// A mere mention has no words to delete: /forget last deletes the message before it, and not the bot's greeting.
func TestForgetLastPassesOverAMention(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := p.run("a", func(r *replica, c *bot.Config) { c.Rights, c.Erasures = r.store.Rights, r.store.Erasure })
	for i, words := range []string{"The release is on Friday.", "The password is swordfish.", "", "/forget last", "/forget last", "/forget last"} {
		a.post(bottest.Said(fmt.Sprint("m", i), "alice", words))
		a.settle()
	}
	count := func(words string) int {
		return one[int](t, p.db(), "SELECT count(*) FROM dingtalk_session_events WHERE content LIKE '%' || $1 || '%'", words)
	}
	bottest.Want(t, "the messages", count("Friday")+count("swordfish"), 0)
	bottest.Want(t, "the greeting", count(wording.Say(wording.Here, "en")), 1)
	bottest.Want(t, "the answer to the third", one[string](t, p.db(), "SELECT body FROM outbox ORDER BY id DESC LIMIT 1"), wording.Say(wording.NoLast, "en"))
}

// The receipt of /forget last has the time and the length of the message, in the language of the conversation, and none of its words.
func TestForgetLastSaysWhichMessage(t *testing.T) {
	t.Parallel()
	for secret, pattern := range map[string]string{
		"备用口令：swordfi": `^🗑️ 已删除你 \d\d-\d\d \d\d:\d\d 的那条消息（12 个字）和我的回答（共 2 条消息）。钉钉里的原消息请自己撤回。$`,
		"code swordfi": `^🗑️ Deleted your message of \d\d-\d\d \d\d:\d\d \(12 characters\) and my answer \(2 messages in all\)\. Please recall`,
	} {
		p := newPlace(t)
		a := p.run("a", func(r *replica, c *bot.Config) { c.Rights, c.Erasures = r.store.Rights, r.store.Erasure })
		for i, words := range []string{secret, "/forget last"} {
			a.post(bottest.Said(fmt.Sprint("m", i), "alice", words))
			a.settle()
		}
		got := a.wire.Texts()[len(a.wire.Texts())-1]
		if !regexp.MustCompile(pattern).MatchString(got) || strings.Contains(got, "swordfi") {
			t.Errorf("after %q the answer is %q, want %s", secret, got, pattern)
		}
		bottest.Want(t, "rows with the words", one[int](t, p.db(), `SELECT
			(SELECT count(*) FROM outbox o WHERE o::text LIKE '%swordfi%') + (SELECT count(*) FROM dingtalk_session_events e WHERE e::text LIKE '%swordfi%')`), 0)
	}
}

// A reminder that was sent is no message of its creator: /forget last deletes the person's own words before it.
func TestForgetLastPassesOverAReminder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := p.run("a", func(r *replica, c *bot.Config) { c.Rights, c.Erasures = r.store.Rights, r.store.Erasure })
	for _, m := range []sessions.Message{bottest.Said("m1", "alice", "The password is swordfish."), bottest.Reminding("m2", "alice", "drink water"), bottest.Said("m3", "alice", "/forget last")} {
		a.post(m)
		a.settle()
	}
	count := func(words string) int {
		return one[int](t, p.db(), "SELECT count(*) FROM dingtalk_session_events WHERE role = 'user' AND content LIKE '%' || $1 || '%'", words)
	}
	bottest.Want(t, "the message", count("swordfish"), 0)
	bottest.Want(t, "the reminder", count("drink water"), 1)
}
