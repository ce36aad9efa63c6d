package upkeep

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"ebb/bot/chat"
	"ebb/bot/wording"
	"ebb/sessions"
)

// newNotice is nil for none: a manual compaction has its receipt instead. Parts of a backlog, compactions during a stop
// and those of one member's context in a group have no notice.
func (r *attempt) newNotice(c sessions.Compaction) *sessions.Reply {
	if !r.by.notify || r.Trigger == TriggerManual || r.partial || r.by.shared.Stopping() {
		return nil
	}
	if s := r.view.Session; r.Key != sessions.NewKey(s.RobotCode, s.ConversationID, "") {
		return nil
	}
	for _, e := range slices.Backward(r.view.Tail) {
		if e.Role != sessions.RoleUser || e.Message == nil {
			continue
		}
		to := chat.TargetOf([]sessions.Event{e})
		to.Mentions = nil
		p := wording.OffloadNotice
		if len(c.Summaries) > 0 {
			p = wording.CompactNotice
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "notice\x00%s\x00%d\x00%d", r.Key, c.Gen, r.view.Session.ViewVersion))
		return &sessions.Reply{
			Target: to, Text: wording.Say(p, r.by.shared.Languages.Choose(r.view.Session.ConversationID, r.by.views.Words.LanguageWords(r.view.Tail, e)), wording.Thousands(r.TokensBefore), wording.Thousands(r.TokensAfter)),
			Nonce: chat.KeyPrefix + hex.EncodeToString(sum[:12]),
		}
	}
	return nil
}
