package written

import (
	"strconv"
	"strings"
	"testing"

	"ebb/sessions/sessionstest"
)

// Marks without an end are looked at a few times.
func TestGrowthOfMarks(t *testing.T) {
	units := map[string]string{}
	for _, u := range []string{"<tool_call>", "<tool_call>x", "<tool_call>\n", "<function=a", "<invoke name=", "[TOOL_CALLS]", "<s></s>", "</s>", "<|im_start|>", "<|im_start|>u\n", "</s>\n", "<|user|> ", "Action: a\n"} {
		units[u] = u
	}
	sessionstest.CheckGrowthOf(t, "marks", 40<<10, units, func(text string) {
		f := New(config)
		for _, r := range text {
			f.Push(string(r))
		}
		f.Finish(false)
	})
}

// For any words of a model, in pieces as they come, the check takes time in proportion to their length.
func TestGrowth(t *testing.T) {
	for _, lead := range []string{"", "<tool_call>{", `{"name":"`, "张三(u2): "} {
		sessionstest.CheckGrowth(t, "behind "+lead, 40<<10, func(text string) {
			f := New(config)
			f.Push(lead)
			for s := text; s != ""; {
				k := min(12, len(s))
				f.Push(s[:k])
				s = s[k:]
			}
			f.Finish(false)
		})
	}
}

// A list that counts is compared with its beginning a few times.
func TestGrowthOfLists(t *testing.T) {
	for _, lead := range []string{"", "<tool_call>{", "```\n"} {
		sessionstest.CheckGrowthOf(t, "list behind "+lead, 40<<10, map[string]string{"1": "1", "甲1、": "甲1、", "十": "十", "0. 甲\n": "0. 甲\n"}, func(text string) {
			f := New(config)
			f.Push(lead)
			i := 0
			for s := range strings.SplitAfterSeq(text, "\n") {
				i++
				f.Push(strings.ReplaceAll(s, "0", strconv.Itoa(i%500)))
			}
			f.Finish(false)
		})
	}
}
