package knowledge

import (
	"testing"

	"ebb/sessions/rules"
	"ebb/sessions/rules/rulestest"
)

func TestRules(t *testing.T) {
	t.Parallel()
	rulestest.Examples(t, ruleFile, func(_ rules.Rule, example string) bool { return Asks(example) })
}

// A message that asks for more, forbids it, or asks a question goes to the model.
func TestAsks(t *testing.T) {
	t.Parallel()
	for _, words := range []string{
		"记住这个文件", "请记住这个文件。", "帮我记住这份文档吧！", "把这个文件记住", "这个附件帮忙存一下，谢谢", "保存这个PDF", "记住文件", "把上面的文件记下来，以后要用",
		"Keep this file.", "Please remember this document for the group", "can you save the attached PDF?",
	} {
		if !Asks(words) {
			t.Errorf("%q does not ask", words)
		}
	}
	for _, words := range []string{
		"", "记住这个文件名", "别记住这个文件", "不要记住这个文件", "记住这个文件里的价格", "要记住这个文件吗", "你记住这个文件了吗？", "谁让你记住这个文件", "记住：周五发布", "记住这个文件，再告诉我总价",
		"忘记这个文件", "文件", "don't keep this file", "keep this file and tell me the price", "remember this", "keep the file name", "did you keep this file?",
	} {
		if Asks(words) {
			t.Errorf("%q asks", words)
		}
	}
}
