package written

import (
	"strings"
	"testing"
)

// An answer about templates keeps their marks, outside code, too.
func TestWordsAboutTemplatesAreKept(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"ChatML 用 <|im_start|> 开始一轮，用 <|im_end|> 结束一轮。模型看到 <|im_end|> 就停。",
		"</s> 是 Llama 2 的结束标记，<|eot_id|> 是 Llama 3 的。",
		"句子以 </s> 结尾，文档以 <|endoftext|> 结尾。\n\n别的模型没有。",
		"DeepSeek 的标记是<｜User｜>和<｜Assistant｜>，结束是<｜end▁of▁sentence｜>。",
		"The token <|im_start|> is followed by the role, e.g. user or assistant.",
		"It ends with <|im_end|>\nand the next begins with <|im_start|> again.",
		"Phi uses <|user|>, <|assistant|> and <|end|>; Gemma uses <start_of_turn> and <end_of_turn>.",
		"标记：\n- <|user|>\n- <|assistant|>\n- <|end|>",
		"1. <|im_start|>\n2. <|im_end|>\n3. </s>",
		"| 模型 | 结束 |\n|---|---|\n| Qwen | <|im_end|> |\n| Llama | <|eot_id|> |",
		"格式如下：\n\n<|im_start|>user\n你好<|im_end|>\n<|im_start|>assistant\n你好！<|im_end|>",
		"[INST] 和 [/INST] 包住问题，前面是 <s>，后面是 </s>。",
		"GLM 的用户标记是 <|user|>\n助手标记是 <|assistant|>\n就这些。",
		"先是 <|im_start|><|im_end|> 这一对，再是 </s><s>。",
		"gpt-oss 写 <|start|>、<|channel|> 和 <|message|>，最后是 <|return|>。",
		"开头是 <|begin_of_text|>，然后 <|start_header_id|> 里是角色，<|end_header_id|> 之后是内容。",
		"<|im_start|> 表示开始",
		"标记 <|im_start|> 配对的是 <|im_end|>",
		"结束标记：</s>",
	} {
		for _, n := range []int{1, 5, len(text)} {
			f := New(config)
			if got := through(t, f, text, n); got != text || len(f.Found()) > 0 {
				t.Errorf("in pieces of %d\n got %q %v\nwant %q", n, got, f.Found(), text)
			}
		}
	}
}

// A turn behind the answer is cut, in the form of any template.
func TestTurnsOfTemplatesAreCut(t *testing.T) {
	t.Parallel()
	for _, behind := range []string{
		"<|im_end|>", "</s>", " </s>\n", "<|eot_id|>", "<|endoftext|>\n\n", "<|end|>", "<|return|>", "<eos>", "<｜end▁of▁sentence｜>", "<|im_end|><|endoftext|>",
		"<|im_end|>\n<|im_start|>user\n好的", "\n<|im_start|>user\n好的<|im_end|>", "<|im_start|>assistant\n好的",
		"<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n好的", "<|eot|><|header_start|>user<|header_end|>\n\n好的",
		"<end_of_turn>\n<start_of_turn>user\n好的", "</s><s>[INST] 好的 [/INST]", "</s>[INST]好的", "<|user|>", "<|user|>\n好的", "\n<|user|>\n好的", "<|observation|>",
		"<|end|>\n<|user|>\n好的", "<｜end▁of▁sentence｜><｜User｜>好的<｜Assistant｜>嗯", "<|end_of_text|><|start_of_role|>user<|end_of_role|>好的",
		"<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>好的", "<|end|><|start|>user<|message|>好的", "<|endoftext|>Human: 好的", "</s>\nuser\n好的", "<|im_end|>\n用户：好的",
		"<|im_end|>\n张三(u2): 好的", "</s>\n[15:04] 好的", "<|im_end|>\nEbb: 好的",
	} {
		for _, n := range []int{1, 5, 200} {
			f := New(config)
			if got := through(t, f, "周五三点"+behind, n); strings.TrimSpace(got) != "周五三点" || !f.Has(Leaked) {
				t.Errorf("of %q in pieces of %d: %q %v", behind, n, got, f.Found())
			}
		}
	}
	for text, want := range map[string]string{
		"周五三点。<|im_end|>\n那就这样定了":                                "周五三点。",
		"ChatML 用 <|im_end|> 结束。<|im_end|>\n<|im_start|>user\n好": "ChatML 用 <|im_end|> 结束。",
		// the bot's own turn
		"<|im_start|>assistant\n周五三点<|im_end|>":                                        "周五三点",
		"<|start_header_id|>assistant<|end_header_id|>\n\n周五三点":                        "周五三点",
		"<|assistant|>\n周五三点":                                                          "周五三点",
		"<start_of_turn>model\nEbb: 周五三点<end_of_turn>":                                 "周五三点",
		"<|im_end|>\n<|im_start|>assistant\n<tool_call>\n" + asJSON + "\n</tool_call>": "",
		"<|im_start|>user\n好的":                                                         "",
	} {
		f := New(config)
		if got := through(t, f, text, 7); strings.TrimSpace(got) != want || !f.Has(Leaked) {
			t.Errorf("of %q: %q %v", text, got, f.Found())
		}
	}
}
