package bot

import (
	"context"
	"testing"

	"ebb/memory"
)

// dyingRights erases a message, and ends the process before its turn commits.
type dyingRights struct {
	memory.Rights
	die func()
}

func (d *dyingRights) ForgetMessage(ctx context.Context, event int64, from memory.Asking) (memory.Forgotten, error) {
	if _, err := d.Rights.ForgetMessage(ctx, event, from); err != nil {
		return memory.Forgotten{}, err
	}
	d.die()
	return memory.Forgotten{}, errAway
}

// The process ends between the erasure of /forget last and the commit of its turn. The repeated turn erases no other message.
func TestForgetLastAfterACrashErasesOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := p.run("a", func(r *replica, c *Config) {
		c.Rights = &dyingRights{Rights: r.store, die: func() { r.die() }}
	})
	a.post(said("m1", "alice", "The release is on Friday."))
	a.settle()
	a.post(said("m2", "alice", "The password is swordfish."))
	a.settle()
	a.post(said("m3", "alice", "/忘记上一条"))
	await(t, "the process is dead", a.isDead)
	a.stop()
	p.forget("a")
	b := p.run("b", func(r *replica, c *Config) { c.Rights = r.store })
	b.settle()
	count := func(words string) int {
		return one[int](t, p.db(), "SELECT count(*) FROM dingtalk_session_events WHERE content LIKE '%' || $1 || '%'", words)
	}
	want(t, "the earlier message", count("Friday"), 1)
	want(t, "the erased message", count("swordfish"), 0)
	want(t, "the reply", one[string](t, p.db(), "SELECT body FROM outbox ORDER BY id DESC LIMIT 1"), say(sayForgotLastBefore, "zh"))
}
