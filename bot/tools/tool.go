package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/sessions/llm"
)

type tool[A any] struct {
	spec  llm.ToolSpec
	call  func(ctx context.Context, in chat.ToolInput, args A) (string, error)
	reads bool
}

// Spec offers the tool.
func (t tool[A]) Spec() llm.ToolSpec { return t.spec }

// Repeatable reports whether a call has no effect.
func (t tool[A]) Repeatable() bool { return t.reads }

// Call decodes the arguments and runs the tool.
func (t tool[A]) Call(ctx context.Context, in chat.ToolInput) (string, error) {
	var args A
	d := json.NewDecoder(strings.NewReader(in.Arguments))
	if err := d.Decode(&args); err != nil {
		return "", fmt.Errorf("arguments of %s: %w", t.spec.Name, err)
	}
	return t.call(ctx, in, args)
}

func storeFault(ctx context.Context, err error, words string) error {
	zerolog.Ctx(ctx).Warn().Err(err).Msg("Tool failed in the storage")
	return errors.New(words)
}

func object(required []string, properties map[string]any) map[string]any {
	s := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func plain(kind string) map[string]any { return map[string]any{"type": kind} }

func field(kind, description string) map[string]any {
	return map[string]any{"type": kind, "description": description}
}
