package outbox

import (
	"slices"
	"strings"
	"time"

	"ebb/sessions"
)

const (
	noteLateAfter = 10 * time.Minute
	maxNoted      = 4000 // bytes of a text that a note leaves in one part
)

// noteLate adds a note to reminders that are late.
func noteLate(outs []sessions.Outgoing, now time.Time) {
	for i := range outs {
		r := &outs[i].Reply
		if r.Target.Late != "" && outs[i].Part == 0 && now.Sub(outs[i].Created) > noteLateAfter && len(r.Text) < maxNoted {
			r.Text += "\n\n" + r.Target.Late
		}
	}
}

// join makes one message of replies: texts in order, each member mentioned once, to the newest target.
func join(outs []sessions.Outgoing, key string) sessions.Outgoing {
	out := outs[0]
	if len(outs) == 1 {
		return out
	}
	out.Reply.Nonce, out.Reply.Target.Mentions = key, nil
	var texts []string
	for _, o := range outs {
		out.Reply.Target.Scheduled = out.Reply.Target.Scheduled && o.Reply.Target.Scheduled
		texts, out.Joined = append(texts, o.Reply.Text), append(out.Joined, o.Reply)
		if t := o.Reply.Target; !t.WebhookExpires.Before(out.Reply.Target.WebhookExpires) {
			out.Reply.Target.Webhook, out.Reply.Target.WebhookExpires = t.Webhook, t.WebhookExpires
		}
		for _, m := range o.Reply.Target.Mentions {
			if !slices.Contains(out.Reply.Target.Mentions, m) {
				out.Reply.Target.Mentions = append(out.Reply.Target.Mentions, m)
			}
		}
	}
	out.Reply.Text = strings.Join(texts, "\n\n---\n\n")
	return out
}
