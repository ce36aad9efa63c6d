package openai

import (
	"context"
	"errors"
	"fmt"

	"ebb/sessions"
	"ebb/sessions/llm"
)

// A reasoning model needs some tokens before it calls a tool.
const checkCall = 512

// The tool has the form of a flush's.
var checkSpec = llm.ToolSpec{Name: "memory_save", Description: "Saves facts.", Schema: map[string]any{
	"type": "object", "properties": map[string]any{"nothing_to_save": map[string]any{"type": "boolean"}}, "required": []any{"nothing_to_save"},
}}

// CheckAnswer sends a model an ordinary request, without retry and fallback: with tools, a call and its result, the configured
// limit of the answer, and a stream. [Client.Learned] then has the forms that the model refused. Its error is a *llm.CallError.
func (c *Client) CheckAnswer(ctx context.Context, name string) error {
	_, err := c.checkModel(ctx, name, checkRequest())
	return err
}

// CheckTool forces a model's tool call, as flushes do, and returns the accepted way.
func (c *Client) CheckTool(ctx context.Context, name string) (way string, err error) {
	resp, err := c.checkModel(ctx, name, llm.Request{
		MaxOutput: checkCall, Messages: checkMessages("There is nothing to save."), Tools: []llm.ToolSpec{checkSpec}, Force: checkSpec.Name,
	})
	if err == nil && !called(resp, checkSpec.Name) {
		err = &llm.CallError{Class: llm.Malformed, Model: name, Err: errors.New("the model answered without the tool that it had to call")}
	}
	return resp.Forced, err
}

// CheckStream reports whether a model streams with the usage at the end.
func (c *Client) CheckStream(ctx context.Context, name string) error {
	resp, err := c.checkModel(ctx, name, checkRequest())
	m := c.findModel(name)
	switch {
	case err != nil:
		return err
	case m.whole.Load():
		return &llm.CallError{Class: llm.Malformed, Model: name, Err: errors.New("the endpoint was asked for a stream and answered in one piece")}
	case resp.Guessed:
		return &llm.CallError{Class: llm.Malformed, Model: name, Err: errors.New("the stream has no usage: tokens and cost are estimates")}
	}
	return nil
}

// checkRequest has the shape of a conversation's requests.
func checkRequest() llm.Request {
	const id = "memory_save:0"
	return llm.Request{
		Tools: []llm.ToolSpec{checkSpec}, Delta: func(string, bool) {},
		Messages: []llm.Message{
			{Role: "system", Content: "Answer with one word."},
			{Role: "user", Content: "[2026-01-01 09:00 Thursday UTC]"}, {Role: "user", Content: "Nothing is to be saved."},
			{Role: "assistant", ToolCalls: []sessions.ToolCall{{ID: id, Name: checkSpec.Name, Arguments: `{"nothing_to_save":true}`}}},
			{Role: "tool", ToolCallID: id, Content: "nothing to save"},
			{Role: "assistant", Content: "Done."},
			{Role: "user", Content: "[09:01]"}, {Role: "user", Content: "Answer with the word pong."},
		},
	}
}

func checkMessages(ask string) []llm.Message {
	return []llm.Message{{Role: "system", Content: "Answer with one word."}, {Role: "user", Content: ask}}
}

func (c *Client) checkModel(ctx context.Context, name string, r llm.Request) (llm.Response, error) {
	m := c.findModel(name)
	if m == nil {
		return llm.Response{}, &llm.CallError{Class: llm.Malformed, Model: name, Err: fmt.Errorf("looking up model %q: it is not configured", name)}
	}
	r.Requests = 1
	k := newCalling(ctx, &c.common, r)
	s, _ := k.nextModel([]*model{m})
	resp, err := k.takeAnswer(s, 0)
	if err != nil {
		return resp, err
	}
	return resp, nil
}
