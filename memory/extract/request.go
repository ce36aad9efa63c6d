package extract

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"ebb/memory/draft"
	"ebb/sessions/llm"
	"ebb/sessions/reasoning"
	"ebb/sessions/written"
)

// After an unusable answer it asks once more with the reason, after an overflow for half, after a refusal without known
// facts. At last the chat's model replaces the flush's own, for this part and those to come.
func (r *flushRun) askModel(ctx context.Context, p *flushPart) (save draft.Save, c llm.Response, err error) {
	whole, alone := r.span == 0 && r.model == r.flusher.Name, len(p.events) == 1 && (r.proved || len(r.pending) == 0)
	for again := whole || alone; ; {
		c, err = r.flusher.Model.Generate(ctx, p.request)
		r.out.Calls++
		r.out.Usage, r.out.Cost = r.out.Usage.Add(c.Usage), r.out.Cost+c.Cost
		r.paid, r.paidCost, r.paidBy = r.paid.Add(c.Usage), r.paidCost+c.Cost, cmp.Or(c.UsedModel(), r.paidBy)
		answered := err == nil
		if answered {
			if save, err = saveOf(c); err == nil {
				return save, c, nil
			}
		}
		fault, known := errors.AsType[*llm.CallError](err)
		switch {
		case ctx.Err() != nil:
			return draft.Save{}, c, err
		case answered && again:
			again = false
			r.addReasons(p, c, err)
		case known && fault.Overflow() && r.halvePart(p):
		case known && fault.RequestFault() && p.known != "":
			r.bare, p.known = true, ""
			*p = r.fitPart(*p)
		case r.model != "":
			r.model, r.limit, r.halved, again = "", r.flusher.Context, maxHalved, false
			*p = r.fitPart(*p)
		default:
			return draft.Save{}, c, err
		}
	}
}

// maxReasons is in characters.
const maxReasons = 2000

// addReasons asks for prose in the right form. Reasons of refused arguments are data: they may hold the model's words.
func (r *flushRun) addReasons(p *flushPart, c llm.Response, why error) {
	if c.Arguments(draft.SaveTool) == "" {
		switch text := reasoning.Strip(c.Text); {
		case text == "":
		case written.IsTalk(text): // it has nothing of the events
			r.addNote(p, callOnly[r.flusher.Language == "en"])
		default:
			p.setData(r.flusher.Fence("notes", text))
		}
		return
	}
	ask := "上一次调用 memory_save 什么也没存下，原因在围栏里。请改正后再调用一次；太长的一条，只写要点。"
	if r.flusher.Language == "en" {
		ask = "The last call of memory_save stored nothing; the reasons are between the fences. Call it again without these faults; of an item that was too long, save the essence."
	}
	reasons := []rune(why.Error())
	r.addNote(p, ask+"\n"+r.flusher.Fence("refused", string(reasons[:min(len(reasons), maxReasons)])))
}

// callOnly follows the events after a reply to them, in Chinese, or in English.
var callOnly = map[bool]string{
	false: "上一次的输出是在回复聊天。不要回复任何人，只调用 memory_save。",
	true:  "The last output replied to the chat. Do not reply to anyone: only call memory_save.",
}

func (r *flushRun) addNote(p *flushPart, note string) {
	note = "\n\n" + note
	p.setData(p.request.Messages[1].Content + note)
	p.request.MaxOutput = max(1, p.request.MaxOutput-r.flusher.Count(note))
}

// Never kept facts are nothing to save.
func saveOf(c llm.Response) (draft.Save, error) {
	arguments := c.Arguments(draft.SaveTool)
	if arguments == "" {
		return draft.Save{}, draft.ErrNotSaved
	}
	save, _, err := draft.ParseSave(arguments)
	switch {
	case errors.Is(err, draft.ErrUnfit):
		return draft.Save{Nothing: true, Full: save.Full, Refused: save.Refused}, nil
	case err != nil:
		return draft.Save{}, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	return save, nil
}
