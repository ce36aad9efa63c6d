package wording

import (
	"fmt"
)

// Phrase is a fixed answer or notice of Ebb, as opposed to a model's text.
type Phrase int

// The phrases, in the order of [phrases].
const (
	Here Phrase = iota
	Empty
	CutOff
	Withheld
	Repeats
	Shortened
	Rounds
	ResultsRefused
	Busy
	Broken
	Unreachable
	Denied
	Refused
	Malformed
	Overflow
	Timeout
	Dead
	Stale
	OverQuota
	NotAdmin
	LimitPersonTurns
	LimitGroupTurns
	LimitUnidentified
	LimitPersonTokens
	LimitTokens
	LimitScheduled
	LimitCompactions
	LimitGroupShare
	LimitTokensShare
	RefusedGroup
	RefusedPerson
	RefusedExternal
	ModelDenied
	ModelUnpaid
	ModelMissing
	ModelMalformed
	VectorsRefused
	NothingToCompact
	NoGain
	StillFull
	GainedTooLittle
	Backlog
	BacklogLeft
	Spent
	Unpriced
	Cost
	OnTheWay
	NextDay
	ByHandOnly
	CompactFailed
	CompactNotice
	OffloadNotice
	Undone
	NothingToUndo
	UndoExpired
	UndoFailed
	SetFailed
	LogEmpty
	LogUnreadable
	Set
	SetUsage
	NotSet
	IdleSetting
	FileOnly
	DidYouMean
	Flushed
	Because
	Renewed
	RenewedOwed
	NotRenewed
	Help
	HelpMarked
	HelpOn
	HelpExample
	HelpNear
	Usage
	UsageAdmins
	KnowNothing
	KnowYou
	KnowChat
	KnowGroup
	KnowMore
	KnowHow
	NoRights
	NoMemory
	NotYours
	Forgotten
	ForgottenLog
	ForgottenToo
	Promoted
	TeamsAlready
	NotShared
	OnlyTheirs
	OnlyHere
	MemoryFrom
	TeamMark
	NoPage
	ForgetNumber
	ForgetNothing
	ForgotLast
	ForgotLength
	ForgotLastBefore
	NoLast
	NoCommand
	NoCommandNear
	ForgetMe
	ForgetWho
	ForgetAsked
	UnknownPerson
	Which
	NotAsked
	PersonForgotten
	ForgotBefore
	ForgetHalf
	ForgetHalfWho
	MemoryHalf
	ForgetOften
	ForgetLittle
	ForgetGroup
	ForgetGroups
	Comma
	Colon
	ExportPrivate
	ExportEmpty
	ExportPage
	ExportNext
	Models
	NoModels
	NoModel
	ModelMark
	ModelPrice
	ModelSet
	ScopeOfGroup
	ScopeOfMember
	ScopeConfigured
	ScopeChosen
	ScopeSet
	ScopePrivate
	WhoAmI
	RoleAdmin
	RoleMember
	RoleOutside
	UsageOf
	RemindSet
	RemindNext
	RemindMoved
	RemindNone
	RemindList
	RemindLine
	RemindLineNext
	RemindHow
	RemindGone
	RemindUnknown
	RemindOver
	RemindNoTime
	RemindNotYours
	RemindPhrase
	RemindPart
	RemindSoon
	RemindNever
	RemindPast
	RemindFar
	RemindNoText
	RemindLong
	RemindOften
	RemindOftenAsked
	RemindUnreachable
	RemindNested
	RemindFullHere
	RemindFullYours
	RemindLeft
	RemindOff
	RemindFailed
	RemindAsks
	RemindDue
	RemindLate
	RemindMissed
	LimitsHere
	LimitsLeft
	OnePersonTurns
	OneGroupTurns
	OneUnidentified
	OnePersonTokens
	OneTokens
	LimitLeft
	LimitEnds
	UsageNone
	CutShort
	StillBusy
	TurnStopped
	NothingRuns
	NotYourTurn
	StillWaiting
	StatusRoom
	StatusSummed
	StatusFacts
	StatusOwed
	StatusWithheld
	StatusNoTools
	WithheldCount
	WithheldMember
	WithheldTool
	WithheldBot
	StatusBusy
	StatusSpent
	StatusFailed
	CallsLeft
	ButtonGone
	ButtonNotYours
	ButtonLate
	ButtonEarly
	ButtonRated
	ButtonThanks
	ButtonNothing
	ButtonFailed
)

// phrases holds each text in Chinese and English: polite, short, and without internal details.
var phrases = map[Phrase]Text{
	Here:           {"我在。有什么可以帮你？发 `/帮助` 看我能做什么。", "I'm here. How can I help? Send `/help` to see what I can do."},
	Empty:          {"模型这次没有给出回答，请换个说法再问一次。", "The model gave no answer this time. Please try asking in other words."},
	CutOff:         {"\n\n（回答太长，到这里被截断了；回复“继续”可以接着说。）", "\n\n(The answer was cut off here for its length; reply \"continue\" to go on.)"},
	Withheld:       {"\n\n（后面的内容被模型服务的内容检查拦下，没有给出。）", "\n\n(The content filter of the model service withheld the rest.)"},
	Repeats:        {"\n\n（模型不断重复同样的话，已停止；请换个问法再试。）", "\n\n(The model repeated the same words without end and was stopped; please ask in other words.)"},
	Shortened:      {"\n\n（这条消息很长：模型直接读到约 %d%%，其余部分可以查阅。分成几条发送，它会读得更全。）", "\n\n(This message is long: the model read about %d%% of it, and can look up the rest. Sent in parts, more of it is read.)"},
	ResultsRefused: {"模型服务拒绝了我查到的内容，这不是你的问题。请再问一次，我会跳过它。", "The model service refused what I looked up, which is not your fault. Please ask again: I will leave it out."},
	Rounds:         {"这个问题需要的步骤太多，我先停在这里。请把它拆小一点再问。", "This needs more steps than I may take. Please ask for a smaller part of it."},
	Busy:           {"模型服务现在很忙，没能及时回答。请稍后再试。", "The model service is busy and did not answer in time. Please try again later."},
	Broken:         {"模型服务的回答没能完整收到，已记录。请再发一次。", "The answer of the model service did not arrive whole; this has been recorded. Please ask again."},
	Unreachable:    {"现在连不上模型服务，已记录。请稍后再试。", "The model service can't be reached at the moment; this has been recorded. Please try again later."},
	Denied:         {"模型服务暂时不可用，需要管理员处理，原因已记录。请联系管理员。", "The model service is not available until an administrator looks at it; the reason has been recorded. Please contact an administrator."},
	Refused:        {"这条内容模型不便回答，请换个说法。", "The model can't answer this as it is. Please put it differently."},
	Malformed:      {"模型服务不接受我发出的请求，这不是你的问题，原因已记录。请联系管理员。", "The model service does not accept my request, which is not your fault; the reason has been recorded. Please contact an administrator."},
	Overflow:       {"这条消息太长，超出了模型能读的范围。请缩短后再发。", "This message is longer than the model can read. Please send a shorter one."},
	Timeout:        {"这个问题处理超时了，请稍后再试，或把它拆小一点。", "This took too long. Please try again later, or ask for a smaller part of it."},
	Dead:           {"你在 %s 发的这条消息我试了几次都没能处理，已放在一边并记录给管理员，不影响后面的对话。", "I tried your message of %s several times and could not process it. It is set aside for an administrator; the conversation goes on."},
	Stale:          {"抱歉，从 %s 起的消息我没能及时回答，现在可能已经过时；还需要的话请再说一声。", "Sorry, I could not answer in time what was said from %s on. It may be out of date by now: please say again what you still need."},
	OverQuota:      {"本组织的钉钉消息额度已用完，我看不到这条消息的内容。请联系管理员。", "Your organization's DingTalk quota is used up, so I can't see what this message says. Please contact an administrator."},
	NotAdmin:       {"这个命令只有管理员可以用。", "Only administrators can use this command."},

	RefusedGroup:      {"抱歉，这个群还没有开通我的服务。如需开通，请把群 ID 发给管理员：`%s`", "Sorry, I am not enabled in this conversation. To enable me, please give its id to an administrator: `%s`"},
	RefusedPerson:     {"抱歉，你还没有使用我的权限。如需开通，请把你的 ID 发给管理员：`%s`", "Sorry, you have no access to me yet. To ask for it, please give your id to an administrator: `%s`"},
	RefusedExternal:   {"抱歉，我只为本组织的成员服务。如需开通，请把你的 ID 发给管理员：`%s`", "Sorry, I serve members of my own organization only. To ask for access, please give your id to an administrator: `%s`"},
	ModelDenied:       {"模型 %s 拒绝访问，现在由其他模型代替，没有其他模型时大家得不到回答。请检查它的密钥和权限。", "Model %s denies access. Other models stand in for it; without one, people get no answer. Please check its key and permissions."},
	ModelUnpaid:       {"模型 %s 的账户余额或额度已用完，现在由其他模型代替，没有其他模型时大家得不到回答。请充值或提高额度。", "The account of model %s has no money or quota left. Other models stand in for it; without one, people get no answer. Please top it up or raise the quota."},
	ModelMissing:      {"找不到模型 %s，现在由其他模型代替，没有其他模型时大家得不到回答。请检查它的地址和模型名。", "Model %s can't be found. Other models stand in for it; without one, people get no answer. Please check its address and its model name."},
	ModelMalformed:    {"模型 %s 拒绝了我最近的每一个请求，大家可能得不到回答。请运行 bot doctor 查看原因。", "Model %s refuses each of my latest requests, and people may get no answer. Please run bot doctor for the reason."},
	VectorsRefused:    {"向量接口（模型 %s）拒绝访问、余额不足或找不到，现在只按字词查找记忆，回答照常。请检查 agent.memory.embeddings 的地址、密钥和余额，或运行 bot doctor。", "The endpoint of embeddings (model %s) denies access, has no money left, or can't be found. Memory is searched by words alone; answers go on. Please check the address, the key and the account of agent.memory.embeddings, or run bot doctor."},
	LimitPersonTurns:  {"你这一分钟的提问次数已用完（每分钟 %d 次），%s 后可以继续。不耗用量的命令仍然可用。", "You have used your questions of this minute (%d a minute); I answer again after %s. Commands that cost nothing still work."},
	LimitUnidentified: {"没有员工 ID 的发送者（组织外的人或机器人）在群里每小时最多提问 %d 次，%s 后可以继续。", "A sender without a staff id (a person outside the organization, or a bot) has %d questions an hour in groups; I answer again after %s."},
	LimitGroupTurns:   {"这个群这一分钟的提问次数已用完（每分钟 %d 次），%s 后可以继续。不耗用量的命令仍然可用。", "This conversation has used its questions of this minute (%d a minute); I answer again after %s. Commands that cost nothing still work."},
	LimitPersonTokens: {"你今天的用量已用完（%s tokens），%s 后可以继续。不耗用量的命令仍然可用。", "You have used your allowance of the day (%s tokens); I answer again after %s. Commands that cost nothing still work."},
	LimitTokens:       {"今天的总用量已用完，%s 后可以继续。不耗用量的命令仍然可用。", "The allowance of the day for all conversations is used up; I answer again after %s. Commands that cost nothing still work."},
	LimitScheduled:    {"你的定时提问今天已回答 %d 次，到了每天的上限；%s 后可以继续。提醒不受影响。", "Your scheduled questions have been answered %d times today, which is the limit; I answer them again after %s. Reminders go on."},
	LimitCompactions:  {"这个会话今天已手动压缩 %d 次，到了每天的上限；%s 后可以继续。自动压缩不受影响。", "This conversation was compacted by hand %d times today, which is the limit; this works again after %s. Automatic compactions go on."},
	LimitGroupShare:   {"你用完了这个群这一分钟里你的那一份，其余的留给其他人；%s 后可以继续。不耗用量的命令仍然可用。", "You have used your share of this conversation's minute, and the rest is for the others; I answer you again after %s. Commands that cost nothing still work."},
	LimitTokensShare:  {"你用完了今天总用量里你的那一份，其余的留给其他人；%s 后可以继续。不耗用量的命令仍然可用。", "You have used your share of the day's allowance for all, and the rest is for the others; I answer you again after %s. Commands that cost nothing still work."},

	NoGain:           {"无需压缩：压缩后不会明显变小。", "Nothing to compact: it would not become much smaller."},
	StillFull:        {"没有可以压缩的内容：%s。上下文仍为 %s / %s tokens（%d%%）。", "There is nothing that could be compacted: %s. The context still takes %s / %s tokens (%d%%)."},
	GainedTooLittle:  {"⚠️ 这次压缩的收益太小，没有采用。上下文仍为 %s / %s tokens（%d%%）。", "⚠️ This compaction gained too little and was not applied. The context still takes %s / %s tokens (%d%%)."},
	Backlog:          {"%s tokens，约 %d 段；今日用量 %s；%s", "%s tokens in about %d parts; today's spend %s; %s"},
	BacklogLeft:      {"\n- 积压还剩 %s tokens，约 %d 段：%s", "\n- %s tokens of backlog are left, in about %d parts: %s"},
	Spent:            {"%s tokens；费用 %.4f", "%s tokens; cost %.4f"},
	Unpriced:         {"%s tokens；未配置价格", "%s tokens; no price configured"},
	Cost:             {"，费用 %.4f", ", cost %.4f"},
	OnTheWay:         {"后台继续压缩", "compaction goes on in the background"},
	NextDay:          {"今日用量已用完，UTC 零点后继续", "today's spend is used up, compaction goes on after midnight UTC"},
	ByHandOnly:       {"自动压缩已关闭，请再发 /compact", "automatic compaction is off, send /compact again"},
	NothingToCompact: {"无需压缩：%s。", "Nothing to compact: %s."},
	CompactFailed:    {"❌ 压缩失败（%s），保持原历史不变。", "❌ Compaction failed (%s); the history stays as it was."},
	CompactNotice:    {"🗜️ 对话较长，我已把较早的内容整理成摘要（%s → %s tokens）。原文仍完整保留，需要时我会查阅。", "🗜️ This conversation is long, so I summarized its older part (%s → %s tokens). The originals are kept, and I look them up when needed."},
	OffloadNotice:    {"📦 我已把较大的工具结果移出上下文（%s → %s tokens）。它们仍完整保留，需要时我会查阅。", "📦 I moved large tool results out of the context (%s → %s tokens). They are kept whole, and I look them up when needed."},
	Undone:           {"↩️ 已撤销上一次压缩：消息 %d–%d 恢复原文，%s → %s tokens。", "↩️ The last compaction is undone: events %d–%d are back in full, %s → %s tokens."},
	NothingToUndo:    {"没有可以撤销的压缩。", "There is no compaction to undo."},
	UndoExpired:      {"这次压缩不能撤销：它之前的数据已超过保留期限并被删除。", "This compaction can't be undone: the data before it is past its retention period and deleted."},
	UndoFailed:       {"撤销没有成功，历史保持不变，请稍后再试。", "The compaction could not be undone; nothing changed. Please try again later."},
	SetFailed:        {"没能保存设置，什么都没有改动，请稍后再试。", "The setting could not be stored; nothing changed. Please try again later."},
	LogEmpty:         {"这个会话还没有压缩过。", "This conversation has not been compacted yet."},
	LogUnreadable:    {"压缩记录暂时读不到，请稍后再试。", "The compaction log can't be read at the moment. Please try again later."},
	Set:              {"✅ 已设置：策略 %s，这个会话自己的设置：%s。", "✅ Set: policy %s; this conversation's own settings: %s."},
	SetUsage:         {"用法：`/压缩 策略 名称`、`/压缩 设置 键 值`，值写“默认”就改回配置文件里的。现在的设置：%s。", "Usage: `/compact policy NAME`, `/compact set KEY VALUE`; the value `default` goes back to the file's. Set now: %s."},
	IdleSetting:      {"没有改动：`%s` 要有%s才起作用。现在的策略是 %s，它的参数：%s。", "Nothing changed: `%s` does nothing without %s. The policy in force is %s, with the parameters %s."},
	NotSet:           {"没有改动：%v。", "Nothing changed: %v."},
	FileOnly:         {"没有改动：`%s` 只能由运维人员在配置文件里设置。", "Nothing changed: `%s` is set in the configuration file alone."},
	DidYouMean:       {"什么都没做。是不是想发 `/compact %s`？要以“%s”为重点压缩，请写 `/压缩 重点 …`。", "Nothing was done. Did you mean `/compact %s`? To compact with the focus \"%s\", write `/compact focus …`."},
	Flushed:          {"记忆：%s", "memory: %s"},
	Because:          {"（%s）", " (%s)"},
	Renewed:          {"好，我们从头开始。之前的内容已归档，重要的事记在记忆里。", "A fresh start. What was said before is kept in the archive, and what matters in memory."},
	RenewedOwed:      {"好，我们从头开始。之前的内容已归档；其中重要的事还没来得及整理进记忆，稍后补上。", "A fresh start. What was said before is kept in the archive; what matters of it is not in memory yet, and follows in a while."},
	NotRenewed:       {"没能开始新的对话，一切照旧，请稍后再试。", "The new conversation could not be begun; nothing changed. Please try again later."},
	Help: {
		"直接说话就行，我会记住重要的事。在群里我只能看到 @我 的消息，看不到其他消息和“@所有人”。命令%s：\n\n",
		"Just talk; I remember what matters. In a group I see only messages that mention me, and never \"@all\". Commands%s:\n\n",
	},
	HelpMarked:  {"（带 * 的在群里限管理员）", " (* in groups: administrators)"},
	HelpOn:      {"`/%s` 的用法%s：\n\n", "Usage of `/%s`%s:\n\n"},
	HelpExample: {"  例如 `%s`\n", "  for example `%s`\n"},
	HelpNear:    {"没有这个命令。是不是想看 `/帮助 %s`？发 `/帮助` 看全部。", "There is no such command. Did you mean `/help %s`? `/help` lists them all."},
	Usage:       {"用法：%s", "Usage: %s"},
	UsageAdmins: {"（管理员）", " (administrators)"},

	KnowNothing:   {"关于你和这里，我还没有记住什么。", "I remember nothing about you or this conversation yet."},
	KnowYou:       {"**关于你**（和你说过的）", "**About you** (and what you said)"},
	KnowChat:      {"**关于这个会话**", "**About this conversation**"},
	KnowGroup:     {"**关于这个群**", "**About this group**"},
	KnowMore:      {"还有 %d 条更早的：`/记忆 %d`。", "%d more, older: `/memory %d`."},
	KnowHow:       {"看全文：`/记忆 查看 编号`；删掉一条：`/记忆 忘记 编号`；删掉关于你的一切：`/忘记我`。", "`/memory show N` shows one in full, `/memory forget N` deletes it. `/forget me` deletes everything about you."},
	NoRights:      {"记忆暂时读不到，什么都没有改动，请稍后再试。", "Memory can't be reached at the moment; nothing changed. Please try again later."},
	NoMemory:      {"这里没有编号 %d 的记忆。发 `/记忆` 看有哪些。", "There is no memory %d here. Send `/memory` to see what there is."},
	NotYours:      {"编号 %d 不是关于你的，也不是你说的：只有管理员可以删掉它。", "Memory %d is neither about you nor said by you: only administrators can delete it."},
	Forgotten:     {"🗑️ 已删除这条记忆：“%s”", "🗑️ Deleted this memory: \"%s\""},
	ForgottenLog:  {"🗑️ 已删除编号 %d 的记忆", "🗑️ Deleted memory %d"},
	ForgottenToo:  {"，以及 %s。", ", and with it %s."},
	Promoted:      {"✅ 已给全团队使用：“%s”，新编号 %d。", "✅ Shared with the whole team: \"%s\", as number %d."},
	TeamsAlready:  {"编号 %d 已经是全团队的记忆。", "Memory %d is the team's already."},
	NotShared:     {"编号 %d 是进展类记忆，只属于这个会话，不能共享。", "Memory %d is about work in progress, which belongs to this conversation alone and can't be shared."},
	OnlyTheirs:    {"编号 %d 是个人的记忆，不能给全团队使用。", "Memory %d is one person's and can't be shared with the team."},
	OnlyHere:      {"编号 %d 只属于这个会话，不能共享。", "Memory %d belongs to this conversation alone and can't be shared."},
	MemoryFrom:    {"（%s · %s · %s）", "(%s · %s · %s)"},
	TeamMark:      {"【全团队】", "[team] "},
	NoPage:        {"没有第 %d 页。", "There is no page %d."},
	ForgetNumber:  {"要删除编号 %d 的记忆，请写 `/记忆 忘记 %d`。", "To delete memory %d, write `/memory forget %d`."},
	ForgetNothing: {"好，不再删除任何内容。", "All right, nothing will be deleted."},
	ForgotLast:    {"🗑️ 已删除你 %s 的那条消息%s和我的回答（共 %s）。钉钉里的原消息请自己撤回。", "🗑️ Deleted your message of %s%s and my answer (%s in all). Please recall the message in DingTalk yourself."},
	ForgotLength:  {"（%d 个字）", " (%d characters)"},
	ForgotLastBefore: {
		"🗑️ 那条消息已经删除。钉钉里的原消息请自己撤回。", "🗑️ That message is deleted. Please recall it in DingTalk yourself.",
	},
	NoLast:        {"没有找到你之前的消息。", "I found no earlier message of yours."},
	NoCommand:     {"没有这个命令，发 `/帮助` 看全部。", "There is no such command; `/help` lists them all."},
	NoCommandNear: {"没有这个命令。是不是想发 `/%s`？发 `/帮助` 看全部。", "There is no such command. Did you mean `/%s`? `/help` lists them all."},
	ForgetMe: {
		"⚠️ 这会删除关于你的一切：%s。别人说的话会保留。删除后无法恢复。\n\n确定的话，请在 10 分钟内回复“确认”。",
		"⚠️ This deletes everything about you: %s. What others said stays. It can't be taken back.\n\nIf you are sure, reply \"confirm\" within 10 minutes.",
	},
	ForgetWho: {
		"⚠️ 这会删除关于 %s（最近一次说话：%s）的一切：%s。别人说的话会保留。无法恢复。\n\n确定的话，请在 10 分钟内回复“确认”，或 `/忘记 @%s 确认`。",
		"⚠️ This deletes everything about %s, who last spoke at %s: %s. What others said stays. It can't be taken back.\n\nIf you are sure, reply \"confirm\" or `/forget @%s yes` within 10 minutes.",
	},
	ForgetAsked:     {"⚠️ 已说明会删除这个人的哪些内容，等待确认。", "⚠️ The preview of an erasure was shown; it waits to be confirmed."},
	UnknownPerson:   {"没有找到这个人。请写 `/忘记 @姓名` 或 `/忘记 @员工ID`。", "I found no member with that name. Write `/forget @name` or `/forget @staff-id`."},
	Which:           {"有几个人叫这个名字，请写 `/忘记 @员工ID`：", "Several people go by that name; please write `/forget @staff-id`:"},
	NotAsked:        {"没有等待确认的删除，或者已经超过 10 分钟。请先发一次不带“确认”的命令。", "There is nothing to confirm, or it is more than 10 minutes old. Send the command without \"yes\" first."},
	PersonForgotten: {"🗑️ 已全部删除：%s。", "🗑️ Everything is deleted: %s."},
	ForgotBefore:    {"🗑️ 已全部删除。", "🗑️ Everything is deleted."},
	ForgetHalf: {
		"还没有全部删完。请过一会儿（10 分钟内）再确认一次：回复“确认”。",
		"Not everything is deleted yet. Please confirm once more in a while, within 10 minutes: reply \"confirm\".",
	},
	ForgetHalfWho: {"还没有全部删完。请过一会儿再发一次：`/忘记 @%s`。", "Not everything is deleted yet. Please send this again in a while: `/forget @%s`."},
	MemoryHalf:    {"还没有全部删完。请稍后再发一次命令。", "Not everything is deleted yet. Please send the command again in a while."},
	ForgetOften:   {"今天已经删除过 %d 次了，请明天再来。", "That was done %d times today already; please come back tomorrow."},
	ForgetLittle:  {"现在没有保存什么", "nothing is kept at the moment"},
	ForgetGroup:   {"（涉及 %d 个群%s）", " (in %d group%s)"},
	ForgetGroups:  {"（涉及 %d 个群%s）", " (in %d groups%s)"},
	Comma:         {"、", ", "},
	Colon:         {"：", ": "},
	ExportPrivate: {"为了不让别人看到，请私聊我发 `/导出我`。", "To keep your data private, please send me `/export me` in a private chat."},
	ExportEmpty:   {"我没有保存关于你的任何内容。", "I keep nothing about you."},
	ExportPage:    {"\n第 %d 页，共 %d 页。", "\nPage %d of %d."},
	ExportNext:    {"下一页：`/导出我 %d`", " Next: `/export me %d`"},

	Models:      {"可用的模型（前面的不可用时依次往后）：\n\n", "Models, each with the next as its fallback:\n\n"},
	NoModels:    {"没有可以选择的模型。", "There are no models to choose from."},
	NoModel:     {"没有叫“%s”的模型，什么都没有改动。", "There is no model \"%s\"; nothing changed. "},
	ModelMark:   {" ← 这里在用", " ← in use here"},
	ModelPrice:  {"：每百万 tokens 输入 %g（缓存 %g），输出 %g", ": a million tokens cost %g in (%g cached), %g out"},
	ModelSet:    {"✅ 从下一条消息起，这个会话由 `%s` 回答；它不可用时依次换其他模型。", "✅ From the next message on `%s` answers here; the others stay behind it as fallbacks."},
	WhoAmI:      {"你的 ID 是 `%s`，角色：%s。这个会话的 ID 是 `%s`。", "Your id is `%s`; role: %s. The id of this conversation is `%s`."},
	RoleAdmin:   {"管理员", "administrator"},
	RoleMember:  {"成员", "member"},
	RoleOutside: {"组织外的人", "outside the organization"},
	UsageOf:     {"这个会话的用量（按 UTC 日期）：\n\n- 今天：%s\n- 本月：%s", "Usage of this conversation, in days of UTC:\n\n- today: %s\n- this month: %s"},
	UsageNone:   {"没有", "none"},

	LimitsHere:      {"\n\n限额：\n", "\n\nLimits:\n"},
	LimitsLeft:      {"\n\n你在这里的限额：\n", "\n\nYour limits here:\n"},
	OnePersonTurns:  {"你每分钟的提问", "your questions in a minute"},
	OneUnidentified: {"没有员工 ID 的你每小时在群里的提问", "your questions in groups in an hour, without a staff id"},
	OneGroupTurns:   {"这个群每分钟的提问", "questions of this group in a minute"},
	OnePersonTokens: {"你每天（UTC）的 tokens", "your tokens in a day of UTC"},
	OneTokens:       {"全部会话每天（UTC）的 tokens", "tokens of all conversations in a day of UTC"},
	LimitLeft:       {"已用 %s / %s，剩 %s", "%s of %s used, %s left"},
	LimitEnds:       {"，%s 重新计算", "; the window ends at %s"},

	ScopeOfGroup:    {"这个群共用一个上下文。", "This group shares one context."},
	ScopeOfMember:   {"这个群的每个成员各有一个上下文。", "Each member of this group has a context of their own."},
	ScopeConfigured: {"这是配置里的范围。", " The configuration says so."},
	ScopeChosen:     {"这是管理员用 `/范围` 选的，`/范围 默认` 改回配置。", " An administrator chose it with `/scope`; `/scope default` goes back to the configuration."},
	ScopeSet: {
		"✅ 从新消息起：%s已有的对话不搬动，留在原来的上下文里，改回来就能接着聊；还在等的消息也在那里回答。群里的记忆仍属于全群。",
		"✅ Applies to new messages. %s No conversation is moved: the earlier ones stay in their contexts, and go on there after a change back. Waiting messages are answered there, too. Memory from the group still belongs to the group.",
	},
	ScopePrivate: {"私聊只有一个上下文，`/范围` 只用于群。", "A private chat has one context; `/scope` is for groups."},

	CutShort:     {"（已停止）", "(stopped)"},
	StillBusy:    {"⏳ 这个问题还在处理。不想等的话，发 `/停止`。", "⏳ This is still in progress. Send `/stop` to end it."},
	TurnStopped:  {"⏹️ 已停止回答“%s”。", "⏹️ Stopped the answer to \"%s\"."},
	NothingRuns:  {"现在没有正在进行的回答。", "There is no answer in progress."},
	NotYourTurn:  {"没有停止：只有提问的人和管理员可以停止一个回答。", "Not stopped: only the asker and administrators can stop an answer."},
	StillWaiting: {"还有 %d 条消息在等：%s。", " Still waiting (%d): %s."},

	StatusRoom:     {"这个对话占用了可用空间的 %d%%。用满时，较早的内容会自动概括，原话仍可查到。", "This conversation takes %d%% of its room. When the room is full, older messages are summarized; the originals can still be looked up."},
	StatusSummed:   {"较早的内容已概括 %d 次%s。", "Summaries of older messages so far: %d%s."},
	StatusFacts:    {"我在这里记住了 %s 件事，发 `/记忆` 查看。", "Facts that I remember here: %s. `/memory` lists them."},
	StatusNoTools:  {"现在的模型不能使用工具：回答前会自动查找记忆，要记住的照常记住；设置提醒请用 /提醒。", "The current model works without tools: memory is searched before each answer, and facts are saved as usual; please set reminders by /remind."},
	StatusWithheld: {"有 %d 条消息没有发给模型，因为服务商拒绝它；最新一条来自%s。换模型后会再试。", "%d messages are kept from the model, since its provider refuses them; the newest is by %s. Another model is asked again."},
	WithheldCount:  {"%d 条，最新一条来自%s", "%d, the newest by %s"},
	WithheldMember: {"一位成员", "a member"},
	WithheldTool:   {"一个工具的结果", "a tool's result"},
	WithheldBot:    {"机器人", "the bot"},
	StatusOwed:     {"最近的内容还没能记入记忆，稍后会再试。", "The latest messages are not in memory yet; this is tried again later."},
	StatusBusy:     {"我正在整理这个对话。", "I am tidying up this conversation at the moment."},
	StatusSpent:    {"今天的整理用量已用完，UTC 零点后继续。", "Today's allowance for tidying up is used up; it goes on after midnight UTC."},
	StatusFailed:   {"上次概括没有成功：%s。稍后会再试，你可以继续说话。", "The last summary failed: %s. It is tried again later; you can go on talking."},

	CallsLeft: {"，剩 %s", ", %s left"},

	RemindSet:         {"⏰ 好的，提醒 #%d：%s，“%s”。", "⏰ Set as reminder #%d: %s, \"%s\"."},
	RemindNext:        {"\n\n接下来：%s。", "\n\nNext: %s."},
	RemindMoved:       {"⏰ 改好了，提醒 #%d：%s，“%s”。", "⏰ Changed reminder #%d: %s, \"%s\"."},
	RemindNone:        {"这里还没有提醒。比如：`/提醒 明天下午3点 交周报`，`/提醒 每周五9点 交周报`。", "There are no reminders here. Try `/remind tomorrow at 3 pm send the report`, or `/remind every Friday at 9 send the report`."},
	RemindList:        {"这里的提醒：\n\n", "Reminders here:\n\n"},
	RemindLine:        {"- #%d %s%s · “%s” · %s\n", "- #%d %s%s · \"%s\" · %s\n"},
	RemindLineNext:    {" · 下次 %s", " · next %s"},
	RemindHow:         {"\n`/提醒 删除 编号` 删除，`/提醒 修改 编号 时间` 改时间。", "\n`/remind delete N` deletes one, `/remind change N WHEN` changes its time."},
	RemindGone:        {"✅ 已删除提醒 #%d：“%s”。", "✅ Deleted reminder #%d: \"%s\"."},
	RemindUnknown:     {"没有提醒 #%d。`/提醒` 列出这里的提醒。", "There is no reminder #%d. `/remind` lists those here."},
	RemindOver:        {"提醒 #%d 已经结束，不用再改。`/提醒` 列出还在的提醒。", "Reminder #%d is over already. `/remind` lists those still set."},
	RemindNoTime:      {"要把提醒 #%d 改到什么时候呢？请写上时间，比如 `/提醒 修改 %d 明天9点`。", "Please write the new time of reminder #%d, such as `/remind change %d tomorrow at 9`."},
	RemindNotYours:    {"提醒 #%d 由别人设置，只有设置的人和管理员可以改。", "Someone else set reminder #%d. Only that person and administrators can change it."},
	RemindPhrase:      {"抱歉，我没看懂时间。可以这样写：`/提醒 10分钟后 喝水`，`/提醒 明天下午3点 交周报`，`/提醒 每周五9点 交周报`，或者直接用平常的话跟我说。", "Sorry, I could not read the time. Try `/remind in 10 minutes drink water`, `/remind tomorrow at 3 pm send the report`, or `/remind every Friday at 9 send the report`, or ask me in plain words."},
	RemindPart:        {"抱歉，时间里的“%s”我没看懂，什么都没有设。请分成几个提醒、换个写法，或者直接用平常的话跟我说。", "Sorry, I could not read \"%s\" as a part of the time, so nothing was set. Please write it another way or set several reminders, or ask me in plain words."},
	RemindSoon:        {"这个时间就是现在。请换一个以后的时间，或者直接用平常的话跟我说。", "That time is now. Please choose a later one, or ask me in plain words."},
	RemindNever:       {"抱歉，这样的重复我做不到。请分成几个提醒，或者直接用平常的话跟我说。", "Sorry, I can't repeat a reminder like that. Please set several reminders, or ask me in plain words."},
	RemindPast:        {"这个时间已经过去了，请换一个以后的时间，或者直接用平常的话跟我说。", "That time is past. Please choose a later one, or ask me in plain words."},
	RemindFar:         {"这个时间太远了，最多五年以内。请换一个时间，或者直接用平常的话跟我说。", "That time is too far away: five years ahead at most. Please choose another one, or ask me in plain words."},
	RemindNoText:      {"要提醒什么呢？请写上内容，比如 `/提醒 10分钟后 喝水`，或者直接用平常的话跟我说。", "Please write what to say, such as `/remind in 10 minutes drink water`, or ask me in plain words."},
	RemindLong:        {"内容太长了，最多 %d 个字。", "The text is too long: %d characters at most."},
	RemindOften:       {"重复的提醒最短间隔是 %d 分钟。", "Repeated reminders need at least %d minutes between them."},
	RemindOftenAsked:  {"重复的提问最短间隔是 %d 分钟。", "Repeated questions need at least %d minutes between them."},
	RemindUnreachable: {"抱歉，我不能主动给你发私聊消息，所以这里设不了提醒。", "Sorry, I can't begin a private chat with you, so reminders don't work here."},
	RemindNested:      {"定时消息里不能再设提醒。", "A scheduled message can't set reminders."},
	RemindFullHere:    {"这里的提醒已经有 %d 个了，请先删掉一些。", "There are %d reminders here already. Please delete some first."},
	RemindFullYours:   {"你的提醒已经有 %d 个了，请先删掉一些。", "You have %d reminders already. Please delete some first."},
	RemindLeft:        {"你在这里的提醒不少于 %d 个，剩下的位置留给其他人；请先删掉一些。", "You have %d reminders here or more, and the last places are for the others. Please delete some first."},
	RemindOff:         {"提醒功能没有开启。", "Reminders are switched off."},
	RemindFailed:      {"⚠️ 暂时处理不了提醒，请稍后再试。", "⚠️ Reminders can't be handled at the moment. Please try again later."},
	RemindAsks:        {"（由我来回答）", " (I will answer it)"},
	RemindDue:         {"⏰ %s", "⏰ %s"},
	RemindLate:        {"⏰ %s\n\n（原定 %s，抱歉晚了）", "⏰ %s\n\n(This was due at %s, sorry for the delay)"},
	RemindMissed:      {"⏰ 抱歉，错过了 %s 的提醒：“%s”。", "⏰ Sorry, the reminder of %s was missed: \"%s\"."},

	ButtonGone:     {"这张卡片的按钮已经失效。", "The buttons of this card no longer work."},
	ButtonNotYours: {"只有提问的人和管理员可以按这个按钮。", "Only the person who asked and administrators may use this button."},
	ButtonLate:     {"这个回答已经结束，没有可停止的。", "This answer has ended; there is nothing to stop."},
	ButtonEarly:    {"回答还没有结束，请稍后再评价。", "The answer has not ended; please rate it later."},
	ButtonRated:    {"这个回答已经评价过了。", "This answer has been rated already."},
	ButtonThanks:   {"谢谢，已记下你的评价。", "Thank you, your rating is stored."},
	ButtonNothing:  {"现在没有等待批准的操作。", "Nothing waits for an approval."},
	ButtonFailed:   {"暂时无法处理，请稍后再按一次。", "This can't be done at the moment. Please press again later."},
}

// Text is a text in Chinese and English.
type Text [2]string

// In returns the text in a language, zh or en.
func (t Text) In(lang string) string {
	if lang == "en" {
		return t[1]
	}
	return t[0]
}

// Say formats a phrase in a language, zh or en.
func Say(p Phrase, lang string, args ...any) string {
	text := phrases[p].In(lang)
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}
