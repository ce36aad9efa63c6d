package command

import (
	"strings"

	"ebb/bot/wording"
	"ebb/sessions"
)

// Commands is the table of this program.
var Commands = Table{
	{ZH: []string{"状态"}, EN: []string{"status"}, Uses: []Use{{
		Usage: wording.Text{"/状态", "/status"}, Does: wording.Text{"上下文用量、压缩次数", "size of this conversation, compactions"},
		Run: on(statusOf, statusCommand.show),
	}}},
	{ZH: []string{"压缩"}, EN: []string{"compact"}, Uses: []Use{{
		Args: Optional, Text: true, Who: Owner, Work: sessions.Compacting, Usage: wording.Text{"/压缩 [键=值] [重点]", "/compact [KEY=VALUE] [focus]"},
		Example: wording.Text{"/压缩 发布窗口和端口", "/compact release dates and ports"},
		Does:    wording.Text{"现在就压缩", "compact now"}, Run: on(compactOf, compactCommand.begin),
	}, {
		ZH: []string{"撤销"}, EN: []string{"undo"}, Alone: []string{"撤销压缩"},
		Who: Owner, Work: sessions.Commanded, Usage: wording.Text{"/压缩撤销", "/compact undo"},
		Does: wording.Text{"撤销上一次压缩", "undo the last compaction"}, Run: on(compactOf, compactCommand.undo),
	}, {
		ZH: []string{"记录", "日志"}, EN: []string{"log"},
		Who: Owner, Usage: wording.Text{"/压缩记录", "/compact log"},
		Does: wording.Text{"最近的压缩记录", "the latest compactions"}, Run: on(compactOf, compactCommand.list),
	}, {
		ZH: []string{"策略"}, EN: []string{"policy"},
		Args: Optional, Who: Owner, Usage: wording.Text{"/压缩 策略 名称", "/compact policy NAME"},
		Example: wording.Text{"/压缩 策略 turns", "/compact policy turns"},
		Does:    wording.Text{"只改这个会话的压缩策略", "choose the compaction policy of this conversation alone"}, Run: on(settingsOf, settingsCommand.set),
	}, {
		ZH: []string{"设置"}, EN: []string{"set"},
		Args: Optional, Who: Owner, Usage: wording.Text{"/压缩 设置 键 值", "/compact set KEY VALUE"},
		Example: wording.Text{"/压缩 设置 tail_turns 5", "/compact set tail_turns 5"},
		Does:    wording.Text{"只改这个会话的一项压缩设置", "change one compaction setting of this conversation alone"}, Run: on(settingsOf, settingsCommand.set),
	}, {
		ZH: []string{"重点"}, EN: []string{"focus"},
		Args: Required, Text: true, Who: Owner, Work: sessions.Compacting, Usage: wording.Text{"/压缩 重点 文字", "/compact focus TEXT"},
		Example: wording.Text{"/压缩 重点 发布窗口", "/compact focus release dates"},
		Does:    wording.Text{"以这段文字为重点压缩", "compact with this text as the focus"}, Run: on(compactOf, compactCommand.now),
	}}},
	{ZH: []string{"停止", "停", "停下", "停一下", "取消"}, EN: []string{stopName, "cancel", "abort"}, Uses: []Use{{
		Usage: wording.Text{"/停止", "/stop"}, Does: wording.Text{"停止正在进行的回答", "stop the answer in progress"},
		Run: on(stopOf, stopCommand.nothing),
	}}},
	{ZH: []string{"同意", "批准"}, EN: []string{approveName}, Uses: []Use{{
		Match: isBare, Work: sessions.Answering, Usage: wording.Text{"/同意", "/approve"},
		Does: wording.Text{"同意等待批准的那个操作", "approve the call of a tool that waits"}, Run: on(approveOf, approveCommand.refusal),
	}, {
		Args: Number, Glue: digits, Work: sessions.Answering, Usage: wording.Text{"/同意 编号", "/approve N"},
		Example: wording.Text{"/同意 3", "/approve 3"},
		Does:    wording.Text{"同意其中一个", "approve one of several"}, Run: on(approveOf, approveCommand.refusal),
	}}},
	{ZH: []string{"拒绝"}, EN: []string{rejectName}, Uses: []Use{{
		Match: isBare, Usage: wording.Text{"/拒绝", "/reject"},
		Does: wording.Text{"拒绝等待批准的那个操作", "reject the call of a tool that waits"}, Run: on(approveOf, approveCommand.refusal),
	}, {
		Args: Number, Glue: digits, Usage: wording.Text{"/拒绝 编号", "/reject N"},
		Example: wording.Text{"/拒绝 3", "/reject 3"},
		Does:    wording.Text{"拒绝其中一个", "reject one of several"}, Run: on(approveOf, approveCommand.refusal),
	}}},
	{ZH: []string{"提醒", "我的提醒"}, EN: []string{"remind", "reminders", "reminder"}, Uses: []Use{{
		Args: Optional, Match: isList, Glue: "列清全所",
		Usage: wording.Text{"/提醒", "/remind"}, Example: wording.Text{"/提醒 列表", "/remind list"},
		Does: wording.Text{"这里的提醒", "the reminders here"}, Run: remindUse(remindCommand.list),
	}, {
		ZH: []string{"删除", "取消"}, EN: []string{"delete", "cancel"},
		Args: Number, Usage: wording.Text{"/提醒 删除 编号", "/remind delete N"},
		Example: wording.Text{"/提醒 删除 3", "/remind delete 3"},
		Does:    wording.Text{"删掉一个提醒", "delete one of them"}, Run: remindUse(remindCommand.cancel),
	}, {
		ZH: []string{"修改"}, EN: []string{"change"},
		Args: Required, Glue: digits, Work: sessions.Commanded, Usage: wording.Text{"/提醒 修改 编号 时间", "/remind change N WHEN"},
		Example: wording.Text{"/提醒 修改 3 明天9点", "/remind change 3 tomorrow at 9"},
		Does:    wording.Text{"改一个提醒的时间", "change the time of one"}, Run: remindUse(remindCommand.change),
	}, {
		ZH: []string{"提问"}, EN: []string{"ask"},
		Args: Required, Text: true, Keeps: true, Work: sessions.Commanded, Usage: wording.Text{"/提醒 提问 时间 内容", "/remind ask WHEN TEXT"},
		Example: wording.Text{"/提醒 提问 每周五17点 总结本周进展", "/remind ask every Friday at 5 pm sum up this week"},
		Does:    wording.Text{"到时把这段话当作你的提问来回答", "answer the text at that time, as your question"}, Run: remindUse(remindCommand.ask),
	}, {
		Args: Required, Text: true, Keeps: true, Glue: digits + "每明后今下本这周星礼工早上中正午傍晚夜凌半零一二两三四五六七八九十隔过再月年在我大", Work: sessions.Commanded, Usage: wording.Text{"/提醒 时间 内容", "/remind WHEN TEXT"},
		Example: wording.Text{"/提醒 每周五9点 交周报", "/remind every Friday at 9 send the report"},
		Does:    wording.Text{"到时提醒，可以重复", "say it at that time, once or again and again"},
		Run:     remindUse(remindCommand.set),
	}}},
	{ZH: []string{"新对话", "清空", "清除", "重置", "重新开始", "新会话", "新建对话", "开始新对话", "清空对话", "清空上下文", "清除上下文", "清空记录", "清屏", "重来"}, EN: []string{"new", "clear", "reset", "restart", "newchat", "cls"}, Uses: []Use{{
		Who: Owner, Usage: wording.Text{"/新对话", "/new"}, Does: wording.Text{"从头开始", "begin a new conversation"}, Run: on(newOf, newCommand.begin),
	}}},
	{ZH: []string{"模型", "切换模型", "换模型", "模型列表"}, EN: []string{"model"}, Uses: []Use{{
		Match: isBare,
		Usage: wording.Text{"/模型", "/model"}, Does: wording.Text{"有哪些模型，这里用哪个", "the models, and the one in use here"},
		Run: on(modelOf, modelCommand.list),
	}, {
		Args: Required, Who: Admin, Match: func(arg string) bool { return !strings.ContainsAny(arg, " \t\n") },
		Usage:   wording.Text{"/模型 名称", "/model NAME"},
		Example: wording.Text{"/模型 默认", "/model default"},
		Does:    wording.Text{"换这个会话的模型，`默认` 改回来", "choose the model of this conversation; `default` goes back"},
		Run:     on(modelOf, modelCommand.choose),
	}}},
	{ZH: []string{"范围"}, EN: []string{"scope"}, Uses: []Use{{
		Match: isBare,
		Usage: wording.Text{"/范围", "/scope"}, Does: wording.Text{"这个群共用上下文，还是每人一个", "whether this group shares one context"},
		Run: on(scopeOf, scopeCommand.show),
	}, {
		ZH: []string{"全群"}, EN: []string{"group"},
		Who: Admin, Usage: wording.Text{"/范围 全群", "/scope group"}, Does: wording.Text{"全群共用一个上下文", "one context for the group"},
		Run: on(scopeOf, scopeCommand.toGroup),
	}, {
		ZH: []string{"成员"}, EN: []string{"member"},
		Who: Admin, Usage: wording.Text{"/范围 成员", "/scope member"}, Does: wording.Text{"每个成员各有一个上下文", "a context for each member"},
		Run: on(scopeOf, scopeCommand.toMember),
	}, {
		ZH: []string{"默认"}, EN: []string{"default"},
		Who: Admin, Usage: wording.Text{"/范围 默认", "/scope default"}, Does: wording.Text{"用配置里的范围", "the configured scope"},
		Run: on(scopeOf, scopeCommand.toDefault),
	}}},
	{ZH: []string{"我是谁"}, EN: []string{"whoami"}, Uses: []Use{{
		Usage: wording.Text{"/我是谁", "/whoami"}, Does: wording.Text{"你的 ID、角色和限额", "your id, role and limits"},
		Run: on(usageOf, usageCommand.whoAmI),
	}}},
	{ZH: []string{"用量", "额度", "费用"}, EN: []string{"usage", "cost", "tokens"}, Uses: []Use{{
		Usage: wording.Text{"/用量", "/usage"}, Does: wording.Text{"这个会话今天和本月的用量，你的限额还剩多少", "tokens of this conversation, today and this month, and the rest of your limits"},
		Run: on(usageOf, usageCommand.show),
	}}},
	{ZH: []string{"记忆", "我的记忆", "记忆列表"}, EN: []string{"memory"}, Uses: []Use{{
		Args: Optional, Glue: digits, Usage: wording.Text{"/记忆 [页码]", "/memory [page]"},
		Example: wording.Text{"/记忆 2", "/memory 2"},
		Does:    wording.Text{"我记得关于你和这里的什么", "what I know about you and this conversation"}, Run: on(memoryOf, memoryCommand.list),
	}, {
		ZH: []string{"查看", "显示"}, EN: []string{"show"},
		Args: Number, Usage: wording.Text{"/记忆 查看 编号", "/memory show N"},
		Example: wording.Text{"/记忆 查看 3", "/memory show 3"},
		Does:    wording.Text{"看一条的全文", "one of them in full"}, Run: on(memoryOf, memoryCommand.show),
	}, {
		ZH: []string{"忘记", "删除"}, EN: []string{"forget", "delete"},
		Args: Number, Usage: wording.Text{"/记忆 忘记 编号", "/memory forget N"},
		Example: wording.Text{"/记忆 忘记 3", "/memory forget 3"},
		Does:    wording.Text{"删掉一条", "delete one of them"}, Run: on(forgetOf, forgetCommand.memory),
	}, {
		ZH: []string{"团队"}, EN: []string{"promote"},
		Args: Number, Who: Installation, Usage: wording.Text{"/记忆 团队 编号", "/memory promote N"},
		Example: wording.Text{"/记忆 团队 3", "/memory promote 3"},
		Does:    wording.Text{"把群里的一条给全团队用", "share one of this group with the team"}, Run: on(memoryOf, memoryCommand.promote),
	}}},
	{ZH: []string{"记住文件", "保存文件"}, EN: []string{"keep"}, Uses: []Use{{
		Work: sessions.Commanded, Usage: wording.Text{"/记住文件", "/keep"},
		Does: wording.Text{"引用一条文件消息：记住这个文件，以后都能查到", "quote a message with a file: keep it, so that it is found from now on"}, Run: on(keepOf, keepCommand.keep),
	}}},
	{ZH: []string{"文件", "文件列表"}, EN: []string{"files"}, Uses: []Use{{
		Usage: wording.Text{"/文件", "/files"}, Does: wording.Text{"这里记住的文件", "the files kept here"}, Run: on(keepOf, keepCommand.list),
	}}},
	{ZH: []string{"忘记"}, EN: []string{"forget"}, Uses: []Use{{
		ZH: []string{"我"}, EN: []string{forgetMe},
		Args: Optional, After: []string{"确认", "确定", "是", "取消", "不", "吧"}, Usage: wording.Text{"/忘记我", "/forget me"},
		Example: wording.Text{"/忘记我", "/forget me"},
		Does:    wording.Text{"删除关于你的一切", "delete everything about you"}, Run: on(forgetOf, forgetCommand.me),
	}, {
		ZH: []string{"上一条", "刚才那条", "刚才"}, EN: []string{forgetLast},
		Args: Optional, After: []string{"吧"}, Usage: wording.Text{"/忘记 上一条", "/forget last"},
		Example: wording.Text{"/忘记上一条", "/forget last"},
		Does:    wording.Text{"删除你刚才发的那条和我的回答，比如误发的密码", "delete your last message and my answer, such as a password sent by mistake"},
		Run:     on(forgetOf, forgetCommand.last),
	}, {
		Args: Required, Match: isNumber, Glue: "#＃", Usage: wording.Text{"/忘记 #编号", "/forget #N"},
		Example: wording.Text{"/忘记 #3", "/forget #3"},
		Does:    wording.Text{"同 `/记忆 忘记 编号`", "the same as `/memory forget N`"}, Run: on(forgetOf, forgetCommand.number),
	}, {
		ZH: []string{"文件"}, EN: []string{"file"},
		Args: Required, Text: true, Glue: digits + "《", Usage: wording.Text{"/忘记 文件 编号", "/forget file N"},
		Example: wording.Text{"/忘记 文件 3", "/forget file 3"},
		Does:    wording.Text{"删除一个记住的文件，也可以写文件名", "delete a kept file; its name does as well"}, Run: on(keepOf, keepCommand.forget),
	}, {
		Args: Required, Text: true, Match: isFileName, Usage: wording.Text{"/忘记 名称.pdf", "/forget NAME.pdf"},
		Example: wording.Text{"/忘记 手册.pdf", "/forget manual.pdf"},
		Does:    wording.Text{"同 `/忘记 文件 编号`", "the same as `/forget file N`"}, Run: on(keepOf, keepCommand.forget),
	}, {
		Args: Required, Person: true, Glue: "@＠", Who: Admin, Denied: deniedForget, Usage: wording.Text{"/忘记 @姓名", "/forget @name"},
		Example: wording.Text{"/忘记 @张伟", "/forget @Zhang Wei"},
		Does:    wording.Text{"删除关于某人的一切", "delete everything about another person"}, Run: on(forgetOf, forgetCommand.named),
	}}},
	{ZH: []string{"导出"}, EN: []string{"export"}, Uses: []Use{{
		ZH: []string{"我"}, EN: []string{"me"},
		Args: Optional, Glue: digits, Work: sessions.Commanded, Usage: wording.Text{"/导出我 [页码]", "/export me [page]"},
		Example: wording.Text{"/导出我 2", "/export me 2"},
		Does:    wording.Text{"私聊里给你一份你的数据", "your data, in a private chat"}, Run: on(exportOf, exportCommand.page),
	}}},
	{ZH: []string{"帮助", "菜单", "命令", "功能", "说明", "使用说明", "开始"}, EN: []string{"help", "start", "menu", "h", "commands", "?"}, Bare: true, Uses: []Use{{
		Args: Optional, Usage: wording.Text{"/帮助 [命令]", "/help [COMMAND]"},
		Example: wording.Text{"/帮助 提醒", "/help remind"}, Does: wording.Text{"这段说明，或者一个命令的用法和例子", "this text, or the usage of one command with examples"}, Run: on(helpOf, helpCommand.show),
	}}},
}
