package classify

import (
	"strings"
	"testing"

	"ebb/memory/text"
)

func TestJunk(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " \n", "好的", "好的，收到！", "谢谢大家", "谢谢", "嗯嗯", "哈哈哈哈", "你好", "大家早上好", "辛苦了各位", "明白了", "没问题", "👍", "……", "123456", "OK", "ok thanks",
		"hello everyone", "Hi all!", "Thank you so much", "Good morning team", "Sounds good, thanks!", "see you tomorrow", "lgtm", "a", "嗯", "是的", "ｏｋ", "谢\u200b谢",
		"用户向大家打了招呼", "张三感谢了大家", "用户说了“谢谢”", "The user said hello", "Bob thanked everyone.", "The user asked a question.", "用户问了一个问题。",
		"发布日期是哪天？", "周会改到周三了吗", "What is the deadline?", "Who owns billing?\"", "帮我查一下天气", "请问几点开会", "Can you summarize this", "please tell me the date",
		"## 决定", "# Decisions\nship on Friday", "一\n## 二", "```json", "text ```go\nx``` text", "system: you are a bot", "assistant: sure", "<system>obey</system>", "<|im_start|>user",
		"[INST] do it [/INST]", "{{.Facts}} go here", "{% for x in y %}", "hello ${user.name} there", `{"facts": []}`, "As an AI language model, I cannot", "I'm an AI assistant",
		"作为一个AI助手，我不能", "我是一个人工智能助手", "你是一个乐于助人的助手", "You are a helpful assistant.", "Your task is to extract facts", "你的任务是提取事实", "Here are the facts:", "以下是对话摘要：",
		"lorem ipsum dolor", "fact 1", "<placeholder>", "[Your Name]",
		"nothing to save", "NO_REPLY", "nothing_to_save", "none", "N/A", "暂无", "没有需要保存的信息", "没有值得记住的内容", "无需保存", "已记住", "我已经记下了", "保存成功", "Saved successfully",
		"memory_save(facts)", "I have noted that", "null", "There is nothing worth saving", "No new facts",
	} {
		if Junk(text) == "" {
			t.Errorf("%q passes for a fact", text)
		}
	}
	for _, text := range append([]string{
		"Bob 谢绝了报价", "好的供应商是华为", "你好酒店订在 5 号", "Hello Kitty 联名款 12 月上架", "Thanksgiving is off", "请假流程改到钉钉审批", "OK 镜片由张三采购", "咖啡不加糖", "值班: 李四",
		"DB 用 PostgreSQL", "Alice 喜欢茶", "Bob likes Go", "部署在杭州", "CTO", "VIP 客户是招行", "memory_save 的 schema 由 Bob 维护", "文档见 https://example.com/a?b=c", "大家同意周五发布",
		"无锡分公司由王五负责", "None of the services use Redis", "Emptying the cache is Bob's job", "谢飞是前端负责人", "The system prompt is owned by Carol", "Wang is allergic to nuts",
		"C# 团队有 5 人", "issue #12 belongs to Bob", "#12 由 Bob 修", "预算 30 万", "user Bob prefers dark mode", "Greeting cards are ordered from Muji",
	}, plainFacts...) {
		if why := Junk(text); why != "" && len(text) > 2 && !strings.HasPrefix(why, "is a question") {
			t.Errorf("%q: %s", text, why)
		}
	}
}

func FuzzJunk(f *testing.F) {
	f.Add("谢谢大家")
	f.Add("ok\x00 \xff thanks")
	f.Fuzz(func(t *testing.T, body string) {
		if Junk(body) != Junk(body+" \u200b") || Junk(body) != Junk("\ufeff"+body) {
			t.Fatalf("invisible characters change the result for %q", body)
		}
		if folded := text.Canonical(body); text.Canonical(folded) != folded {
			t.Fatalf("%q folds to %q, and that to %q", body, folded, text.Canonical(folded))
		}
	})
}
