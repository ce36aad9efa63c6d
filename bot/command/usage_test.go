package command_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/command"
	"ebb/sessions"
)

// freeUses take any argument, or none at all.
var freeUses = map[string]bool{
	"/model": true, "/forget #N": true, "/forget @name": true, "/help [COMMAND]": true, "/remind": true, "/remind WHEN TEXT": true, "/forget NAME.pdf": true,
}

// wrongArguments have the usage that answers each.
var wrongArguments = []struct{ wrong, usage string }{
	{"/状态 怎么样", "用法：`/状态`"},
	{"/status now", "Usage: `/status`"},
	{"/压缩 a=3 b=9", "`full_context_turns` 要有策略 \"turns\"才起作用。现在的策略是 token_budget，它的参数：tail_share=0.6, tail_turns=3。\n\n用法：`/压缩 [键=值] [重点]`"},
	{"/compact a=3 b=9", "`full_context_turns` does nothing without policy \"turns\". The policy in force is token_budget, with the parameters tail_share=0.6, tail_turns=3.\n\nUsage: `/compact [KEY=VALUE] [focus]`"},
	{"/compact policy=turns cache_price=0.5 the dates", "with the parameters cached_context_turns=3, full_context_turns=4, roll_up_segments=8, roll_up_tokens=1200.\n\nUsage: "},
	{"/压缩 a=99", "用法：`/压缩 [键=值] [重点]`"},
	{"/compact policy=nothing", "Usage: `/compact [KEY=VALUE] [focus]`"},
	{"/压缩 撤销 两次", "用法：`/压缩 [键=值] [重点]`、`/压缩撤销`"},
	{"/compact undo twice", "Usage: `/compact [KEY=VALUE] [focus]`, `/compact undo`"},
	{"/压缩 记录 全部", "`/压缩记录`"},
	{"/compact log all", "`/compact log`"},
	{"/压缩 策略", "用法：`/压缩 策略 名称`"},
	{"/compact policy", "Usage: `/compact policy NAME`"},
	{"/压缩 策略 一 二", "用法：`/压缩 策略 名称`"},
	{"/compact policy nothing", "Usage: `/compact policy NAME`"},
	{"/压缩 设置 a", "用法：`/压缩 策略 名称`、`/压缩 设置 键 值`"},
	{"/compact set a 3 4", "Usage: `/compact policy NAME`, `/compact set KEY VALUE`"},
	{"/压缩 设置 a 3", "它的参数：tail_share=0.6, tail_turns=3。\n\n用法：`/压缩 策略 名称`"},
	{"/compact set b 3", "does nothing without policy \"turns\""},
	{"/压缩 重点", "`/压缩 重点 文字`"},
	{"/compact focus", "`/compact focus TEXT`"},
	{"/停止 一下", "用法：`/停止`"},
	{"/stop it", "Usage: `/stop`"},
	{"/新对话 好吗", "用法：`/新对话`"},
	{"/new one", "Usage: `/new`"},
	{"/模型 一 二", "用法：`/模型`、`/模型 名称`"},
	{"/model one two", "Usage: `/model`, `/model NAME`"},
	{"/模型 没有", "用法：`/模型`、`/模型 名称`"},
	{"/model nothing", "Usage: `/model`, `/model NAME`"},
	{"/范围 部门", "用法：`/范围`、`/范围 全群`"},
	{"/scope team", "Usage: `/scope`, `/scope group`"},
	{"/范围 全群 今天", "`/范围 全群`"},
	{"/scope group today", "`/scope group`"},
	{"/范围 成员 今天", "`/范围 成员`"},
	{"/scope member today", "`/scope member`"},
	{"/范围 默认 今天", "`/范围 默认`"},
	{"/scope default today", "`/scope default`"},
	{"/我是谁 呢", "用法：`/我是谁`"},
	{"/whoami now", "Usage: `/whoami`"},
	{"/用量 今天", "用法：`/用量`"},
	{"/usage today", "Usage: `/usage`"},
	{"/记忆 全部", "用法：`/记忆 [页码]`"},
	{"/memory all", "Usage: `/memory [page]`"},
	{"/记忆 查看 一", "`/记忆 查看 编号`"},
	{"/memory show", "`/memory show N`"},
	{"/记忆 忘记 全部", "`/记忆 忘记 编号`"},
	{"/memory forget all", "`/memory forget N`"},
	{"/记忆 团队 全部", "`/记忆 团队 编号`"},
	{"/memory promote all", "`/memory promote N`"},
	{"/忘记", "用法：`/忘记我`"},
	{"/forget", "Usage: `/forget me`"},
	{"/忘记 我 昨天的话", "用法：`/忘记我`"},
	{"/forget me on friday", "Usage: `/forget me`"},
	{"/忘记 上一条 三遍", "`/忘记 上一条`"},
	{"/forget last week", "`/forget last`"},
	{"/忘记 文件", "`/忘记 文件 编号`"},
	{"/forget file", "`/forget file N`"},
	{"/记住文件 三遍", "用法：`/记住文件`"},
	{"/keep it", "Usage: `/keep`"},
	{"/文件 全部", "用法：`/文件`"},
	{"/files all", "Usage: `/files`"},
	{"/同意 吧吧", "用法：`/同意`"},
	{"/approve it", "Usage: `/approve`"},
	{"/同意 全部", "`/同意 编号`"},
	{"/approve all", "`/approve N`"},
	{"/拒绝 全部", "用法：`/拒绝`"},
	{"/reject all", "Usage: `/reject`"},
	{"/拒绝 三", "`/拒绝 编号`"},
	{"/reject three", "`/reject N`"},
	{"/提醒 删除 全部", "`/提醒 删除 编号`"},
	{"/remind delete all", "`/remind delete N`"},
	{"/提醒 修改", "`/提醒 修改 编号 时间`"},
	{"/remind change", "`/remind change N WHEN`"},
	{"/提醒 提问", "`/提醒 提问 时间 内容`"},
	{"/remind ask", "`/remind ask WHEN TEXT`"},
	{"/导出", "用法：`/导出我 [页码]`"},
	{"/export", "Usage: `/export me [page]`"},
	{"/导出 我 全部", "用法：`/导出我 [页码]`"},
	{"/export me all", "Usage: `/export me [page]`"},
}

// Wrong arguments of a command are answered with its usage in the language of the command, and nothing is done. Each use that
// can have wrong arguments has a line.
func TestWrongArgumentsGetTheUsage(t *testing.T) {
	t.Parallel()
	lines := wrongArguments

	for _, c := range command.Commands {
		for _, u := range c.Uses {
			for _, lang := range []string{"zh", "en"} {
				covered := false
				for _, l := range lines {
					covered = covered || strings.Contains(l.usage, "`"+u.Usage.In(lang)+"`")
				}
				bare := len(c.Uses) > 1 && u.Usage.In("en") == "/scope"
				if !covered && !freeUses[u.Usage.In("en")] && !bare {
					t.Errorf("no wrong argument of %s", u.Usage.In(lang))
				}
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Admins, c.Own = []sessions.UserID{"u-root"}, ownInTests }})
		for i, l := range lines {
			w.Post(bottest.Said(fmt.Sprint("w", i), "root", l.wrong))
			bottest.After(time.Second)
			all := w.Wire.Texts()
			if got := all[len(all)-1]; len(all) != i+1 || !strings.Contains(got, l.usage) {
				t.Errorf("%s is answered with %q as the reply %d, want %q in it", l.wrong, got, len(all), l.usage)
			}
		}
		if kept := w.View().Session.Settings; kept != "" || len(bottest.Attempts(t, w.Store.Mem.Compactions)) != 0 || len(w.Model.Requests("chat")) != 0 {
			t.Errorf("settings %q, %d compactions, %d model calls", kept, len(bottest.Attempts(t, w.Store.Mem.Compactions)), len(w.Model.Requests("chat")))
		}
	})
}
