package classify

import (
	"ebb/memory/dates"
	"ebb/memory/text"
	"regexp"
)

// SelfReference reports whether the speaker of a text speaks of themself: 我, 本人, I, my and so on. It does not count 我们,
// our, or words that only contain such a word (自我, I/O, phase I).
func SelfReference(body string) bool {
	return selfRE.MatchString(ordinalRE.ReplaceAllString(text.Canonical(text.Clip(body)), "□"))
}

// ordinalRE finds the Roman number one.
var ordinalRE = regexp.MustCompile(`\b(?:phase|part|type|stage|volume|chapter|class|tier|level|war|grade|section|figure|table|act|step|world war) i\b`)

// selfRE finds words of the first person. A Chinese character directly before or after 我 can make a plural or another
// word of it.
var selfRE = compilePhrases(`
(?:^|[^自忘本大小唯真超无])我(?:$|[^们方国司校党军院俩侪辈族厂队部])
(?:^|[^日成基根版])本人|俺(?:$|[^们])|(?:^|[^你他她它])咱(?:$|[^们俩仨])|鄙人
(?:^|[^\w./'-])i(?:$|[^\w./-])
(?:^|[^\w'])(?:i'(?:m|ve|d|ll)|my|me|mine|myself)(?:$|[^\w'])
`)

// Candidate reports whether a text may hold something worth remembering. It asks to be remembered, describes its
// speaker, or has the words, dates, amounts or identifiers of decisions and duties. Questions and small talk are no
// candidates. The check is cheap and calls no model; a flush reads the marked messages.
func Candidate(body string) bool {
	for s := range text.Sentences(text.Clip(body)) {
		f := text.Canonical(s)
		if askedRE.MatchString(f) {
			return true
		}
		if isQuestion(f) || openRE.MatchString(f) || requestRE.MatchString(f) || smallTalkRE.MatchString(text.Words(f)) {
			continue
		}
		if propertyRE.MatchString(f) || weightRE.MatchString(f) || identifierRE.MatchString(f) || dates.Mentions(s) {
			return true
		}
	}
	return false
}

// AsksToRemember reports whether a text explicitly asks to remember something, as in "记住：…" and "please note that …".
// The question whether the bot remembers is not such a request.
func AsksToRemember(body string) bool {
	for s := range text.Sentences(text.Clip(body)) {
		if f := text.Canonical(s); askedRE.MatchString(f) && (!isQuestion(f) || politeRE.MatchString(f)) {
			return true
		}
	}
	return false
}

// RecallQuestion reports whether a text asks about, or builds on, earlier talk: "上次定的是什么", "do you remember", a
// question about a past day or about the speaker. A request to remember is not a recall question.
func RecallQuestion(body string) bool {
	for s := range text.Sentences(text.Clip(body)) {
		f := text.Canonical(s)
		switch {
		case rememberRE.MatchString(f):
			return true
		case askedRE.MatchString(f):
			continue
		case recallRE.MatchString(f):
			return true
		case !isQuestion(f) && !wonderRE.MatchString(f):
			continue
		case pastRE.MatchString(f) || dates.NamesPast(s):
			return true
		}
	}
	return false
}

// isQuestion reports whether a folded text ends like a question.
func isQuestion(folded string) bool { return questionRE.MatchString(folded) }

var (
	questionRE = regexp.MustCompile(`(?:\?["'」”)）~ ]*|[吗么呢嘛]["'。.!~ ]*|(?:是不是|对不对|好不好|行不行|可不可以|没有啊?|没)[。.!~ ]*)$`)

	// openRE matches the beginnings of questions.
	openRE = compilePhrases(`
^(?:@\S{1,30} )?(?:请问|为什么|为何|怎么|怎样|如何|什么|谁|哪|几点|多少|有没有|是不是|能不能|要不要|可不可以|是否)
^(?:@\S{1,30} )?(?:who|what|when|where|which|why|how)(?:'s|\b)(?:$|[^:])
^(?:@\S{1,30} )?(?:do|does|did|is|are|was|were|can|could|would|will|has|have|should) (?:you|i|we|he|she|it|they|the|this|that|there|anyone|anybody|someone)\b
`)

	// wonderRE matches the words of a question anywhere.
	wonderRE = compilePhrases(`
什么|谁|哪(?:个|些|里|天|位|一|次|儿|家)|多少|几(?:点|号|个|天|月|次|位)|怎么|为什么|为何|何时|是不是|有没有|能不能|是否|啥|咋|来着|吗(?:$|[^\p{Han}])
^(?:@\S{1,30} )?(?:and |so |but |hey |ok,? )?(?:who|what|when|where|which|why|how|did|do|does|was|were|is|are|have|has|can|could)(?:'s|\b)
`)

	askedRE = compilePhrases(`
(?:^|[,，:：;；、。!！"' ]|请|帮我|帮忙|麻烦|给我|替我|你要?|您|务必|一定|一定要|需要|要|都|大家|机器人|先|也)(?:记住|记一下|记下来?|记着|记好|记录一下|记录下来|记牢|牢记|谨记|备注一下|备忘一下|记个笔记|备忘[:：])(?:了?[,，:：;；。!！ ]*)[^,，:：;；。!！?？了吗没 ]
(?:把|将).{1,60}(?:记住|记下来?|记一下|记录下来|存到记忆|存进记忆|加到记忆)
(?:别|不要|勿|莫)忘(?:了|记|掉)?[^吗?]{2}
(?:^|[,，。;；!！:： ]|请|要|大家|务必|一定)记得(?:$|[^吗没?？])(?:[^上之那当昨前]|$)
(?:^|[.,;:!"'] ?|\bplease |\bpls |\bplz |\band |\bcan you |\bcould you |\bwould you |\bwill you |\bmust |\bto |\bso |\balso |\bbot |\bebb )(?:remember|note|make a note|take a note|memori[sz]e|keep in mind|bear in mind|keep a note)(?: (?:that|this|to|of|my|our|the|we|i|i'm|for|down|it)\b| ?[:,，：])
\b(?:don't|do not|dont|never) forget\b
\bfor (?:the record|future reference)\b|\bfyi\b
`)

	// politeRE matches requests in the form of a question.
	politeRE = compilePhrases(`
(?:能|可以|可否|能否|能不能|可不可以)(?:请你|麻烦你)?(?:帮我|帮忙|替我)
\b(?:can|could|will|would) you (?:please )?(?:remember|note|memori[sz]e|make a note|take a note|keep in mind) (?:that |this ?:|of |my .{1,40} is |i |i'm )
`)

	propertyRE = compilePhrases(`
(?:^|[^自])(?:我|俺|咱|本人)(?:的)?(?:\p{Han}{0,4}?)(?:是|叫|姓|住|来自|喜欢|爱|讨厌|偏好|习惯|过敏|负责|属于|生日|老家|老婆|老公|儿子|女儿|孩子|爱人|父母|妈|爸|电话|手机|邮箱|工号|职位|部门|岗位|英文名|花名|名字|昵称|擅长|不会|不吃|不喝|不用|吃素|希望|打算|计划|准备|毕业|养了?|换了|换成|换到|搬到|搬家|入职|离职|请假|休假|出差|转岗|调到|加入|对接|主管|接手|在\p{Han}{0,6}(?:工作|上班|办公|读书)|不能|没法|只能|从不|从来|总是|一般|平时|每天|每周|更)
\b(?:i am|i'm|i was born|i live|i work|i like|i love|i hate|i dislike|i prefer|i always|i never|i usually|i have|i've|i had|i own|i joined|i moved|i left|i want|i need|i will|i'll|i can't|i cannot|i can only|i don't|i do not|i speak|i use|i study|i studied|i grew|i'd (?:like|rather|prefer)|i got|i bought|i started|i switched|i plan|i promised|i'm allergic|call me|mine is)\b
\bmy (?:\w{1,16} ){0,3}(?:is|are|was|were|has|will)\b|\bmy (?:name|birthday|email|phone|wife|husband|son|daughter|kid|kids|dog|cat|team|manager|boss|role|address)\b
`)

	weightRE = compilePhrases(`
以后|今后|下次|从现在|偏好|决定|拍板|敲定|商定|议定|说定|定了|定为|定在|定于|定成|选定|选用|采用|确定|确认(?:了|为|是)|同意|通过了|负责|牵头|对接人|接口人|负责人|owner|截止|到期|deadline|\bddl\b|期限|里程碑
改成|改为|改到|改在|改用|换成|换到|更正|纠正|不再|推迟|提前到|延期|延后|取消了?|停用|下线|作废|废弃|迁移到|升级到|统一用|统一改|规定|约定|要求|必须|禁止|不准|不允许|不得|严禁|规则|流程是|规范|原则上|务必|一律
生日|过敏|忌口|地址是|电话是|邮箱是|编号|工单|版本号|预算|报价|合同|账号是|账户|域名|端口|密码是|上线时间|发布日期
\b(?:from now on|decided|decision|agreed|approved|deadline|due|responsible for|in charge of|owns|owned by|assigned to|takes over|took over|changed to|change to|switched to|switch to|moved to|move to|renamed|postponed|rescheduled|cancel+ed|deprecated|replaced|prefers?|preference|must|mandatory|required|forbidden|not allowed|policy|rule is|birthday|allergic|budget|contract|we use|we will use|instead of|no longer|promise[ds]?|commit(?:ted)? to|correction|actually,)\b
`)

	// identifierRE finds amounts, times of day, links, and names that machines or offices give. Texts are folded.
	identifierRE = compilePhrases(`
[¥$€£₩] ?\d|\d (?:元|块钱?|万|亿|美元|美金|欧元|港币|usd|rmb|cny|eur|hkd|dollars?|yuan|percent|%)|\d+%
\bhttps?://\S|\bwww\.\S|\b[\w.+-]+@[\w-]+\.\w{2}
\b[a-z]{2,10}-\d{1,8}\b|#\d{2}|\bv\d+\.\d|\b\d+\.\d+\.\d+\b|\d{6}|\b1[3-9]\d-?\d{4}-?\d{4}\b
\b\d{1,2}[:：]\d{2}\b|\d{1,2}点|[一二三四五六七八九十两]点(?:半|钟|整|前|后|开)|\b\d{1,2} ?[ap]m\b
`)

	rememberRE = compilePhrases(`
还记得|记不记得|记得(?:吗|么|不|没)|记得.{0,30}(?:吗|么|\?)|你记得|记没记(?:住|得)|(?:记住|记下)了?(?:吗|么|没|没有)(?:$|[^\p{Han}])|有没有记(?:住|下|录)
\b(?:do|did|don't|can|can't|could) (?:you|we|u|anyone|anybody) (?:still |also |even |all )?(?:remember|recall)\b(?: (?:me|my|our|the|what|when|who|where|which|how|why|if|whether|i|we|anything|that (?:\w+ )?(?:time|day|meeting|place|thing)|\?)|[?.]|$)
^(?:remember|recall) (?:me|my|our|us|the|that) .{0,60}\?
^(?:remember|recall) (?:when|what|who|where|how|the time|last)\b
\bremind me (?:what|who|when|where|how|which|of what)\b
`)

	recallRE = compilePhrases(`
(?:我|你|他|她|咱|我们|大家|谁|有人)(?:们)?(?:上次|上回|之前|以前|刚才|刚刚|昨天|前天|前几天|当时|那天|有没有|是不是|是否|都|曾经?)*(?:说|提|讲|问|聊|答应|承诺|推荐|建议|发|定|讨论)(?:到|起)?过.{0,20}(?:什么|啥|谁|哪|多少|几|怎么|吗|么|没|\?)
(?:我|你|他|她)(?:之前|上次|以前|昨天|刚才)?说过(?:的|什么|要|$|[?,，。])
谁(?:说|提|讲|问|定|决定|建议|推荐|答应|拍板|同意|反对|负责)(?:的|过|了|要|来着)
(?:什么时候|何时|哪天|几号|哪次)(?:\p{Han}{0,6})(?:定|说|决定|提|讨论|确定|开始|上线|发布|聊|改|答应|见|去)(?:的|了|过|$|\?)
(?:怎么|如何|为什么|为何)(?:\p{Han}{0,4})(?:定|说|决定|讨论|选|改)(?:的|了)
来着
有没有(?:人)?(?:\p{Han}{0,4})(?:说|提|讲|聊|讨论|定|答应|决定)(?:到|起)?过
(?:把|将|按照?|依照|根据|用|照|沿用|参考|继续|接着|查(?:一下|下|查)?|找(?:一下|下|找|出)?|翻(?:一下|下|翻)?|看(?:一下|下|看)?|回顾(?:一下)?|回忆(?:一下)?|总结(?:一下|下)?|发(?:我|一下)?|给我|再发|重复(?:一下)?|列(?:一下|出)?)(?:\p{Han}{0,4})(?:上次|上回|之前|以前|昨天|前天|刚才|前几天|上周|上个月|历史|聊天记录|那次)
(?:上次|上回|之前|以前|昨天|前天|刚才|前几天|上周|上个月)(?:\p{Han}{0,8})(?:说|提|讲|聊|讨论|定|决定|问|发)(?:到|过)?的(?:\p{Han}{0,10})(?:呢|是|在哪|再|发|给|$)
我(?:是谁|叫什么|姓什么|住在?哪|(?:的)?(?:名字|生日|工号|电话|邮箱|部门|职位|老家|偏好|喜好|爱好|习惯)(?:是|叫|在)?(?:什么|多少|哪|几|啥|谁)|(?:最)?(?:喜欢|讨厌|爱)(?:吃|喝|看|听|用|玩|去)?(?:什么|啥|哪|谁)|对什么过敏)
你(?:都)?(?:知道|记得|记住|了解)(?:关于)?(?:我|我们|这个群)(?:的)?(?:\p{Han}{0,4})(?:什么|哪些|多少|吗|$)
\blast time\b.{0,80}\?|\b(?:as|like|what|where|from|since|than) (?:we (?:did |had |left off )?)?last time\b|\b(?:continue|pick up) (?:from )?where we left\b
\bwhat (?:did|do|have|had|was it|were) (?:i|we|you|he|she|they|[a-z]{2,20}) (?:\w{1,12} ){0,2}?(?:say|said|tell|told|mention(?:ed)?|decided?|agreed?|ask(?:ed)?|promised?|recommend(?:ed)?|suggest(?:ed)?|conclude|plan|planned|choose|chose|pick(?:ed)?|call|discuss(?:ed)?|talk(?:ed)?|like|prefer)\b
\bwho (?:said|told|mentioned|decided|suggested|proposed|promised|asked|recommended|agreed|approved|owns|owned|is responsible|was responsible)\b
\b(?:when|where|why|how) (?:did|was|were|had) (?:i|we|you|he|she|they|it|the|this|that|my|our|[a-z]{2,20})\b
\b(?:did|have|has|had) (?:i|we|you|he|she|they|anyone|anybody|someone|[a-z]{2,20}) (?:ever |already |not )?(?:say|said|mention(?:ed)?|tell|told|decided?|agreed?|talk(?:ed)?|discuss(?:ed)?|promised?|asked?)\b
\bwhat(?:'s| is| was| are| were) my\b|\bwho am i\b|\bwhere (?:do|did) i (?:live|work)\b|\bwhat do you (?:know|remember) about\b
\bwhat (?:was|were) (?:the|our|that)\b|\b(?:you|i|we|he|she|they) (?:said|mentioned|told me|promised|agreed) (?:earlier|before|previously|yesterday|last)\b
`)

	// pastRE matches words that make a question one about the past.
	pastRE = compilePhrases(`
上次|上回|上一次|上个?(?:月|周|星期|季度)|之前|以前|曾经?|刚才|刚刚|当时|那天|那次|那时|过去|原来|最初|一开始|历史|前几天|前两天|前阵子|前段时间|先前|早些时候|当初|最近
\b(?:last time|earlier|previously|before|ago|back then|in the past|originally|formerly|once|ever|used to|so far|recently|already|other day|previous|history)\b
`)
)
