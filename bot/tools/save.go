package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"ebb/bot/chat"
	"ebb/memory/draft"
)

type saver struct {
	facts Facts
	loc   *time.Location
}

// call saves what it can and says what it could not, with the reason: a model that reads the reason mends the fact in its next call.
// An error is returned only if nothing was saved.
func (s saver) call(ctx context.Context, in chat.ToolInput, _ json.RawMessage) (string, error) {
	save, rejected, err := draft.ParseSave(in.Arguments)
	if err != nil {
		return "", err
	}
	chat := in.Chat
	chat.Location = s.loc
	drafts, refused := draft.Route(save.Facts, chat)
	rejected = append(rejected, refused...)
	if len(drafts) == 0 {
		if len(rejected) > 0 {
			return "", fmt.Errorf("memory_save: nothing was saved: %s", strings.Join(rejected, "; "))
		}
		return "nothing to save", nil
	}
	r, err := s.facts.Save(ctx, in.Lease, drafts)
	if err != nil {
		return "", storeFault(ctx, err, "memory_save: the memory could not be stored, nothing was saved")
	}
	for _, id := range r.Unknown {
		rejected = append(rejected, fmt.Sprintf("replaces %d: no known fact of that number can be corrected here; save it without replaces", id))
	}
	out := fmt.Sprintf("saved %d", len(r.Saved))
	if n := len(r.Duplicate); n > 0 {
		out += fmt.Sprintf(", %d known already", n)
	}
	if n := len(r.Superseded); n > 0 {
		out += fmt.Sprintf(", %d corrected", n)
	}
	if len(rejected) > 0 {
		out += "; not saved: " + strings.Join(rejected, "; ")
	}
	return out, nil
}
