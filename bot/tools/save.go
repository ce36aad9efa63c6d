package tools

import (
	"context"
	"fmt"
	"strings"

	"ebb/bot"
	"ebb/memory"
)

type saver struct{ store memory.Store }

func (s saver) call(ctx context.Context, in bot.ToolInput, _ memory.Save) (string, error) {
	save, rejected, err := memory.ParseSave(in.Arguments)
	if err != nil {
		return "", err
	}
	drafts := make([]memory.Draft, len(save.Facts))
	for i, f := range save.Facts {
		drafts[i] = memory.Route(f, in.Chat)
	}
	if len(drafts) == 0 {
		return "nothing to save", nil
	}
	r, err := s.store.Save(ctx, in.Lease, drafts)
	if err != nil {
		return "", trouble(ctx, err, "memory_save: the memory could not be stored, nothing was saved")
	}
	out := fmt.Sprintf("saved %d", len(r.Saved))
	if n := len(r.Duplicate); n > 0 {
		out += fmt.Sprintf(", %d known already", n)
	}
	if len(rejected) > 0 {
		out += "; not saved: " + strings.Join(rejected, "; ")
	}
	return out, nil
}
