package openaitest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"ebb/sessions/retry"
)

type object = map[string]any

// write panics with http.ErrAbortHandler to break a connection.
func (r Reply) write(ctx context.Context, w http.ResponseWriter, req Request) {
	r.calls = slices.Clone(r.calls) // a permanent rule's reply is shared
	for i := range r.calls {
		r.calls[i].ID = fmt.Sprintf("call_%d_%d", req.N, i)
	}
	switch {
	case r.hang:
		<-ctx.Done()
		panic(http.ErrAbortHandler) // returning would answer with an empty 200
	case r.status != 0:
		r.writeError(w)
	case len(r.events) > 0 || req.Stream:
		r.writeStream(ctx, w, req)
	default:
		r.writePlain(w, req)
	}
}

func (r Reply) writeError(w http.ResponseWriter) {
	if r.retryAfter != "" {
		w.Header().Set("Retry-After", r.retryAfter)
	}
	if r.body == "" {
		fail(w, r.status, http.StatusText(r.status))
		return
	}
	kind := r.contentType
	if kind == "" {
		kind = "application/json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(r.status)
	_, _ = w.Write([]byte(r.body))
}

func (r Reply) writePlain(w http.ResponseWriter, req Request) {
	msg := object{"role": "assistant", "content": r.text}
	if r.reasoning != "" {
		msg["reasoning_content"] = r.reasoning
	}
	if len(r.calls) > 0 {
		var calls []object
		for _, c := range r.calls {
			calls = append(calls, r.callPiece(0, c.ID, c.Name, c.Arguments, true))
		}
		msg["tool_calls"] = calls
		if r.text == "" {
			msg["content"] = nil
		}
	}
	body := r.envelope(req, "chat.completion")
	body["choices"] = []object{{"index": 0, "message": msg, "finish_reason": r.finishReason()}}
	if !r.noUsage {
		body["usage"] = r.usage()
	}
	b, _ := json.Marshal(body)
	w.Header().Set("Content-Type", "application/json")
	if r.endAfter >= 0 {
		_, _ = w.Write(b[:len(b)/2])
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	if r.breakAfter >= 0 {
		_, _ = w.Write(b[:len(b)/2])
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(b)
}

func (r Reply) envelope(req Request, kind string) object {
	return object{"id": fmt.Sprintf("chatcmpl-%d", req.N), "object": kind, "created": 1, "model": req.Model}
}

func (r Reply) usage() object {
	return object{
		"prompt_tokens": r.prompt, "completion_tokens": r.completed, "total_tokens": r.prompt + r.completed,
		"prompt_tokens_details": object{"cached_tokens": r.cached},
	}
}

// Plain answers have no index.
func (r Reply) callPiece(index int, id, name, args string, plain bool) object {
	p := object{"function": object{"name": name, "arguments": args}, "type": "function"}
	if id != "" && !r.noIDs {
		p["id"] = id
	}
	if !plain && !r.noIndex {
		p["index"] = index
	}
	return p
}

func (r Reply) data(req Request) []string {
	if len(r.events) > 0 {
		return r.events
	}
	var out []string
	add := func(delta object, finish any) {
		c := r.envelope(req, "chat.completion.chunk")
		c["choices"] = []object{{"index": 0, "delta": delta, "finish_reason": finish}}
		if r.usageAt != nil {
			part := r
			part.prompt, part.completed = r.usageAt(len(out))
			c["usage"] = part.usage()
		}
		b, _ := json.Marshal(c)
		out = append(out, string(b))
	}
	for _, p := range pieces(r.reasoning, r.pieces) {
		add(object{"reasoning_content": p, "content": nil}, nil)
	}
	for _, p := range pieces(r.text, r.pieces) {
		add(object{"role": "assistant", "content": p}, nil)
	}
	for i, c := range r.calls {
		add(object{"tool_calls": []object{r.callPiece(i, c.ID, c.Name, "", false)}}, nil)
		for _, p := range pieces(c.Arguments, r.pieces) {
			add(object{"tool_calls": []object{r.callPiece(i, "", "", p, false)}}, nil)
		}
	}
	add(object{}, r.finishReason())
	if req.UsageAsked && !r.noUsage && r.usageAt == nil {
		c := r.envelope(req, "chat.completion.chunk")
		c["choices"], c["usage"] = []object{}, r.usage()
		b, _ := json.Marshal(c)
		out = append(out, string(b))
	}
	return append(out, "[DONE]")
}

func pieces(s string, n int) []string {
	var out []string
	for rs := []rune(s); len(rs) > 0; {
		k := min(n, len(rs))
		out = append(out, string(rs[:k]))
		rs = rs[k:]
	}
	return out
}

func (r Reply) writeStream(ctx context.Context, w http.ResponseWriter, req Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	var all strings.Builder
	for i, d := range r.data(req) {
		if i == r.quiet {
			_ = flush()
			<-ctx.Done()
			panic(http.ErrAbortHandler)
		}
		if i == r.breakAfter || i == r.endAfter {
			r.cut(w, all.String(), flush)
			return
		}
		if i > 0 && !retry.Sleep(ctx, r.delay) {
			return
		}
		event := "data: " + d + "\n\n"
		if r.split > 0 {
			all.WriteString(event)
			continue
		}
		_, _ = w.Write([]byte(event))
		if !r.atOnce {
			_ = flush()
		}
	}
	r.writeSplit(w, all.String(), flush)
}

func (r Reply) cut(w http.ResponseWriter, rest string, flush func() error) {
	r.writeSplit(w, rest, flush)
	_ = flush()
	if r.breakAfter >= 0 {
		panic(http.ErrAbortHandler)
	}
}

func (r Reply) writeSplit(w http.ResponseWriter, s string, flush func() error) {
	for n := r.split; len(s) > 0; {
		k := min(n, len(s))
		_, _ = w.Write([]byte(s[:k]))
		_ = flush()
		s = s[k:]
	}
}
