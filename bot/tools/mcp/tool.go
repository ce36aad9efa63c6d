package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/sessions/llm"
)

// maxDescription bounds what a server says of a tool, in bytes.
const maxDescription = 1000

// tool is a tool of a server.
type tool struct {
	of   *link
	name string // the server's own
	spec llm.ToolSpec
	asks bool // each call needs an approval
}

// toolOf describes t for the model. taken has the names in use.
func toolOf(l *link, t *mcp.Tool, taken map[string]bool) tool {
	spec := llm.ToolSpec{Name: nameOf(l.server.Name, t.Name, taken), Description: cut(storable(t.Description), maxDescription)}
	schema, _ := t.InputSchema.(map[string]any)
	spec.Schema = objectSchema(schema)
	return tool{of: l, name: t.Name, spec: spec, asks: matches(l.server.Confirm, t.Name)}
}

// nameOf makes a name that providers accept, and that no other tool of the server has. A changed name always has a hash of the
// server's own name. Without it the order of the list would decide which of two tools has the name. An approved call could reach the other.
func nameOf(server, name string, taken map[string]bool) string {
	full := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r == '-' || r == '_' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z') {
			return r
		}
		return '_'
	}, server+chat.ServerSeparator+name)
	short := full
	for try := 0; len(short) > maxName || taken[short] || short == full && full != server+chat.ServerSeparator+name; try++ { // a server can also list the name with the hash
		sum := sha256.Sum256([]byte(server + "\x00" + name + strings.Repeat("\x00", try)))
		tail := "_" + hex.EncodeToString(sum[:4])
		short = full[:min(len(full), maxName-len(tail))] + tail
	}
	return short
}

func sameSpecs(x, y []chat.Tool) bool {
	return slices.EqualFunc(x, y, func(x, y chat.Tool) bool { return reflect.DeepEqual(x.Spec(), y.Spec()) })
}

// Spec implements chat.Tool.
func (t tool) Spec() llm.ToolSpec { return t.spec }

// NeedsApproval implements chat.NeedsApproval.
func (t tool) NeedsApproval() bool { return t.asks }

// Call implements chat.Tool. The errors are sentences for the model: they name no address and no secret.
func (t tool) Call(ctx context.Context, in chat.ToolInput) (string, error) {
	var args map[string]any
	if err := json.Unmarshal([]byte(in.Arguments), &args); err != nil || args == nil {
		return "", fmt.Errorf("arguments of %s: got no JSON object", t.spec.Name)
	}
	within, stop := context.WithTimeout(ctx, t.of.server.Timeout)
	defer stop()
	answered, err := t.call(within, args)
	if err != nil {
		return "", t.failed(ctx, within, err)
	}
	r := result{tool: t.spec.Name, send: in.Send, read: func(uri string) (*mcp.ReadResourceResult, error) { return t.of.resource(within, uri) }}
	if answered.IsError {
		r.send = nil
	}
	text := t.of.server.conceal(r.textOf(answered))
	if answered.IsError {
		return "", errors.New(text)
	}
	return text, nil
}

// call makes the call once more if the server can't have seen the first one.
func (t tool) call(ctx context.Context, args map[string]any) (*mcp.CallToolResult, error) {
	for again := false; ; again = true {
		session, err := t.of.awaitShortly(ctx)
		if err != nil {
			return nil, err
		}
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: t.name, Arguments: args})
		if err == nil && result != nil {
			if result.NeedsInput() {
				return nil, errNeedsInput
			}
			return result, nil
		}
		if answered, ok := errors.AsType[*jsonrpc.Error](err); ok && !errors.Is(err, mcp.ErrSessionMissing) {
			return nil, answered
		}
		t.of.verify(ctx, session, err)
		if again || !neverArrived(err) {
			return nil, err
		}
	}
}

var errNeedsInput = errors.New("the tool asks for further input, which this bot does not give")

const maxRefusal = 500

// failed is the sentence of a failed call.
func (t tool) failed(ctx, within context.Context, err error) error {
	zerolog.Ctx(ctx).Warn().Str("server", t.of.server.Name).Str("tool", t.name).Str("fault", t.of.server.faultOf(err)).Msg("MCP call failed")
	answered, isAnswer := errors.AsType[*jsonrpc.Error](err)
	switch {
	case isAnswer:
		return fmt.Errorf("the server refused the call: %s", cut(t.of.server.conceal(storable(answered.Message)), maxRefusal))
	case errors.Is(err, errNeedsInput), errors.Is(err, errAway):
		return err
	case ctx.Err() == nil && within.Err() != nil:
		return fmt.Errorf("no answer within %s; the call may have had an effect", t.of.server.Timeout)
	case ctx.Err() != nil:
		return fmt.Errorf("the call was ended: %w", context.Cause(ctx))
	}
	return errors.New("the connection to the server broke; the call may have had an effect")
}
