package classify

import (
	"ebb/memory/text"
	"regexp"
	"strings"
)

// Junk returns why a text is no fact worth keeping, in words that a model can act on; empty if it may be one. It finds
// small talk and reports of it, questions, requests, parts of prompts, the memory tools' own output, and texts without
// words. A short text may be a fact: "周会周三", "Bob: CTO".
func Junk(body string) string {
	t := text.Canonical(body)
	bare := text.Words(t)
	switch {
	case bare == "":
		return "has no words; save a fact in a sentence"
	case isTiny(bare):
		return "is too short to be a fact; save a whole sentence that says who or what"
	case scaffoldRE.MatchString(t) || headingRE.MatchString(text.DropInvisible(body)):
		return "is part of a prompt or a form, not a fact; save what people said, without headings, fences, tags or roles"
	case toolTalkRE.MatchString(bare):
		return "is about saving, not a fact; where there is nothing to save, set nothing_to_save"
	case smallTalkRE.MatchString(bare) || reportRE.MatchString(t):
		return "is small talk, not a fact; leave greetings and thanks out"
	case isQuestion(t) || requestRE.MatchString(t):
		return "is a question or a request, not a fact; save the answer, once there is one"
	}
	return ""
}

// isTiny reports whether a text is too short for a fact: one or two characters.
func isTiny(bare string) bool {
	n := 0
	for _, r := range bare {
		if r != ' ' {
			n++
		}
		if n > 2 {
			return false
		}
	}
	return true
}

// headingRE finds headings and fences, which only the text as it was written shows.
var headingRE = regexp.MustCompile("(?m)^\\s*(?:#{1,6}(?:\\s|$)|={3,}|-{3,}\\s*$|~{3})|`{3}")

// scaffoldRE finds parts of prompts, and the forms that a model fills in badly.
var scaffoldRE = compilePhrases(`
^(?:system|assistant|human|developer|助手|系统) :
</?(?:system|user|assistant|human|instructions?|context|memory|memories|tool_?calls?|function_?calls?|thinking|think|example|facts?)\b[^>]{0,80}>
<\|[^>]{0,40}\|?>
\[/?(?:inst|sys|system)\]
<</?sys>>
\{\{|\}\}|\{%|%\}
\$\{[a-z_.]{1,40}\}
"(?:facts|content|nothing_to_save|tool_calls|role)" :
\bas an? (?:ai|artificial intelligence|(?:large )?language model)\b(?: (?:assistant|model|language))?
\bi(?: am|'m) (?:just )?an? (?:ai|(?:large )?language model)\b
\byou are (?:a|an|the) (?:helpful|useful|friendly|ai|expert|intelligent|professional)\b
\byour (?:task|job|role|goal) is to\b
作为(?:一个|一名|一位)?(?:ai|人工智能|大?语言模型|智能助[手理])
我是(?:一个|一名|一位)?(?:ai|人工智能|大?语言模型)(?:助[手理]|语言模型|大?模型|机器人)?(?:$|[,，。.!！,])
你是(?:一个|一名|一位).{0,16}(?:助手|助理|机器人|ai|模型|专家)
你的(?:任务|职责|目标|角色)(?:是|:|：)
\blorem ipsum\b
^\[?<?(?:your name|placeholder|example fact|fact \d{0,2}|the fact|string|事实\d{0,2}|示例事实|内容|占位符)>?\]?[:：.。]?$
^(?:here (?:are|is) (?:the|a|some)|below (?:are|is)|以下是|下面是).{0,20}(?:facts?|summary|memories|事实|摘要|总结|记忆|要点)[:：.。]?$
^(?:summary|conversation summary|对话摘要|聊天记录|摘要|总结)[:：]?$
`)

// toolTalkRE matches talk of the memory tools and their callers about saving, in the form of [text.Words].
var toolTalkRE = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`memory (?:save|search|get)(?: .{0,80})?`,
	`nothing to save|no ?reply|none|null|nil|n a|na|undefined|empty|no (?:new )?(?:facts?|memor(?:y|ies)|information)(?: to (?:save|store|record))?(?: found)?`,
	`(?:there (?:is|was) )?nothing (?:worth |important |new )*(?:to |worth )?(?:saving|save|remembering|remember|note|record)`,
	`(?:successfully )?(?:saved|stored|recorded|remembered)(?: successfully| to memory| in memory| it| this| that)*`,
	`(?:i have|i ve|i ll|i will) (?:saved|stored|recorded|noted|remembered|remember|save|note)(?: (?:it|this|that|to memory|in memory|for you))*`,
	`(?:暂时|目前)?(?:无|暂无|没有)(?:任何|什么|新的?)?(?:值得|需要|可以|可)?(?:保存|存储|存|记录|记住|记忆|事实|信息|内容)*(?:的?(?:事实|信息|内容|东西|记忆)?)`,
	`(?:无需|不需要|不用|不必)(?:保存|存储|记录|记住)`,
	`(?:我|已|已经|帮你|为您|为你)*(?:记住|记下|保存|记录|存好|存储)(?:了|到记忆|成功|完成|好了|下来)*`,
	`(?:保存|存储|记录)(?:成功|完成|完毕)`,
}, "|") + `)$`)

// smallTalkRE matches texts that consist of small talk only, in the form of [text.Words].
var smallTalkRE = regexp.MustCompile(`^(?:(?:` + strings.Join([]string{
	`好的|好滴|好嘞|好吧|好呀|好|行|可以|嗯+|哦+|噢+|喔+|啊+|哈+|嘿+|呵+|哇+|唉|对|是的?|没错|没事|没关系|没问题|不客气|不用谢|客气|收到|明白|了解|知道|懂|同意|赞成?|支持|厉害|牛|棒`,
	`多谢|谢谢|谢|感谢|辛苦|麻烦|拜托|抱歉|对不起|不好意思|打扰|请稍等|稍等|等一下|等等|马上|在吗|在的?|来了|到了|加油`,
	`你好|您好|大家好|哈喽|哈啰|嗨|早安|早上好|上午好|中午好|下午好|晚上好|晚安|早|再见|拜拜|回头见|明天见|下次见|周末愉快|新年快乐|节日快乐|恭喜|祝贺|生日快乐`,
	`大家|各位|同学们|同事们|老师们?|老板|亲|朋友们|伙伴们|所有人|机器人|你们|你|您|我|们`,
	`很|非常|太|真|十分|都|也|就|先|再|一下|的|了|啦|咯|喽|呀|哈|吧|哦|呢|嘞|哟|呐|嘛|滴|哒`,
	`hi|hello|hey|yo|howdy|greetings|good (?:morning|afternoon|evening|night|day)|morning|welcome|bye|goodbye|see (?:you|ya)(?: (?:later|soon|tomorrow))?|take care|have a (?:nice|good|great) (?:day|weekend|one)|happy (?:friday|weekend|birthday|new year)|congrats|congratulations|nice to meet you|how are you`,
	`ok|okay|okey|k|kk|yes|yep|yeah|yup|no|nope|sure|fine|right|alright|great|good|nice|cool|awesome|perfect|lol|haha+|hmm+|wow|lgtm|got it|i see|understood|noted|roger|copy that|sounds good|will do|no problem|np|no worries|you re welcome|my pleasure|sorry|please|done|agreed|\+ ?1`,
	`thanks|thank you|thank|thx|ty|tks|cheers|much appreciated|appreciate it|a lot|so much|very much|again|for (?:the|your) (?:help|time)|in advance`,
	`it|this|that|(?:what )?nice (?:one|weather)(?: today)?|(?:今天|今儿|这)?天气(?:真|很|挺|太|好)?(?:不错|好|热|冷|棒)`,
	`there|everyone|everybody|all|team|guys|folks|bot|friends?|you|both|to|and|for`,
}, "|") + `) ?)+$`)

// reportRE finds reports of small talk, such as greetings and thanks.
var reportRE = compilePhrases(`
^(?:the )?(?:user|\w{1,20}) (?:said|says|wrote|sent) (?:a )?["']?(?:hi|hello|thanks?|thank you|ok|okay|good (?:morning|night)|greetings?)\b["']?(?: to (?:everyone|everybody|the (?:bot|assistant|group|team)))?[.!]?$
^(?:the )?(?:user|\w{1,20}) (?:greeted|thanked|welcomed|said (?:hi|hello|thanks|goodbye) to) (?:the )?(?:everyone|everybody|bot|assistant|group|team|user|us|them|all|\w{1,20})[.!]?$
^(?:the )?user (?:asked|is asking|asks) (?:a question|for help|something|questions)[.!]?$
^[^,，。]{1,12}?(?:向|和|跟|给|对)?[^,，。]{0,8}(?:打了?个?招呼|问了?好|问候了?|表示了?感谢|表示了?谢意|道了?谢|致谢|感谢了(?:大家|机器人|助手)|说了?["']?(?:你好|谢谢|好的|再见|早上好|收到)["']?)[.。!！]?$
^(?:用户|对方)(?:提了|问了|提出了?)(?:一个|几个)?问题[.。]?$
`)

// requestRE finds requests to the bot.
var requestRE = compilePhrases(`
^(?:@\S{1,30} )?(?:请问|请?帮(?:我|忙|一下)|请你?(?:查|看|写|告诉|总结|翻译|解释|列|生成|介绍|搜索|分析)|麻烦(?:你|帮)|能不能|能否|可不可以|可以帮|你能|给我(?:讲|写|看|查|来|说|列)|告诉我)
^(?:@\S{1,30} )?(?:please )?(?:help me|tell me|show me|give me|can you|could you|would you|will you)\b
^(?:please )(?:help|tell|show|give|write|summari[sz]e|translate|explain|list|find|search|check)\b
`)
