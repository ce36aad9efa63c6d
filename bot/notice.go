package bot

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"ebb/sessions"
)

// notice is the notice of a compaction for the people of its conversation; nil for none. No notice follows a compaction
// by hand, which has its receipt, of one that is a part of a backlog, or while the process stops. None goes to a group about
// the context of one member.
func (r *run) notice(c sessions.Compaction) *sessions.Reply {
	if !r.cfg.CompactNotify || r.Trigger == triggerManual || r.partial || r.stopping() {
		return nil
	}
	if s := r.view.Session; r.Key != sessions.NewKey(s.RobotCode, s.ConversationID, "") {
		return nil
	}
	for _, e := range slices.Backward(r.view.Tail) {
		if e.Role != sessions.RoleUser || e.Message == nil {
			continue
		}
		to := target([]sessions.Event{e})
		to.Mentions = nil
		p := sayOffloadNotice
		if len(c.Summaries) > 0 {
			p = sayCompactNotice
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "notice\x00%s\x00%d\x00%d", r.Key, c.Gen, r.view.Session.ViewVersion))
		return &sessions.Reply{
			Target: to, Text: say(p, r.languages.of(r.view.Session.ConversationID, r.views.ownWords(e)), thousands(r.TokensBefore), thousands(r.TokensAfter)),
			Nonce: noncePrefix + hex.EncodeToString(sum[:12]),
		}
	}
	return nil
}
