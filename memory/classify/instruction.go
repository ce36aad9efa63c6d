package classify

import "ebb/memory/text"

// Instruction returns why a text is an instruction that poses as a fact, in words that a model can act on; empty if it
// is none. Instructions are orders to readers of the memory, talk of prompts, wishes to hide the nature of the bot, and
// wishes for more readers, which only the program decides. A wish about answers ("用中文回答我") is a preference.
//
// This check is one defense of several, and the weakest: models see memories as data, and their scope never follows
// from their words. It reads through full-width and invisible characters, capitals, and words spelled letter by letter.
func Instruction(body string) string {
	t := harmlessRE.ReplaceAllString(text.JoinSpelled(text.Canonical(body)), "□")
	switch {
	case widenRE.MatchString(t):
		return "asks for who may read it, which no text decides; save the fact alone, without where to put it"
	case concealRE.MatchString(t):
		return "asks to hide something about the assistant; that is an instruction, not a fact"
	case orderRE.MatchString(t):
		return "is an instruction to the assistant, not a fact; save what people decided, prefer or are, in the third person"
	}
	return ""
}

const (
	// Wishes about answers are conditional, and so are a team's own rules: "有人要权限就让他找 Bob". Only sentences that address
	// the assistant, or dictate what it says, are orders.
	anyAsker = `(?:^|[,，。;；:：!！"'\n]|不管|无论|如果|要是|只要|凡是|假如|一旦|以后|今后)(?:谁|有人|别人|任何人)(?:要是|如果|再|一|敢|来|向你|跟你|都)*`
	whenever = `\b(?:whenever|every time|if|when|should) (?:asked\b|(?:anyone|someone|anybody|somebody|people|a user|users?|they|he|she) (?:ever )?(?:asks?|wants?|needs?|requests?|inquires?|mentions?|questions?|wonders?)\b).{0,60}`
	simply   = `(?:then |please |just |simply |always |only |should |must )*`
	person   = `[` + surnames + `]\p{Han}{1,2}`

	rulesChinese = `(?:指令|指示|规则|规定|设定|提示词|提示语|prompt|要求|限制|约束|命令|原则|守则|准则|人设|安全策略|安全机制|系统消息|内容|对话|一切)`
	rulesEnglish = `(?:instructions?|rules?|prompts?|guidelines?|directives?|constraints?|restrictions?|polic(?:y|ies)|system messages?|safety (?:rules|checks|filters)|commands?)`
	everybody    = `(?:所有人|全体(?:成员|人员|员工|用户)?|全员|大家|每个人|每个群|所有的?群|其他群|别的群|全公司|整个公司|整个组织|组织|公司|全局|其他人|别人|他人|所有的?用户|其他用户|任何人|团队|管理员|公共|公开)`
	everyone     = `(?:everyone|everybody|anyone|all (?:the )?(?:users?|groups?|people|members|chats?|employees)|the (?:whole|entire) (?:company|team|organi[sz]ation|org)|the team|the company|other (?:users?|people|groups?))`
	documents    = `(?:文档|公告|日历|日程|看板|页面|文件|仓库|链接|表格|目录|频道|报表|日报|周报|相册|网盘|项目|wiki|dashboard|repo|代码|接口|字段|按钮|菜单)`
)

// harmlessRE finds text with the words of an order that is not one. Examples are orders not to do something, past
// actions, settings of programs, and wishes about the manner of an answer.
var harmlessRE = compilePhrases(`
(?:不要|不能|不可以?|不得|不许|不准|严禁|禁止|切勿|请勿|千万别|别)(?:再|随意|擅自)?(?:忽略|无视|忘记|忘掉|忘了|违反|绕过|跳过|违背)
(?:忽略|无视|忘记|违反|绕过|跳过|违背)了
忽略(?:的)?规则(?:写|在|是|文件|配置|列表|里|有|放|如下|用|由|为|可)
(?:规则|限制|要求)(?:写在|放在|见|由)
` + documents + `(?:默认|目前|现在|已经?|都|是|设为|设置为|改为|改成|仅|只)*(?:对|向|给|让)?` + everybody + `(?:都|均)?(?:可见|可读|可查看|可编辑|可以?看到|能看到|能看|可以?看)
\b(?:do not|don't|never|cannot|can't|must not|mustn't|should not|shouldn't|did not|didn't) (?:ever )?(?:ignore|disregard|forget|override|bypass|skip)\b
\bignore rules? (?:are|is|in|live|lives|for|files?|go)\b
\b(?:from now on,? )?(?:please )?you (?:must|will|shall|should|can|need to|have to)(?: now| always| only| please)* (?:answer|reply|respond|write|speak|talk|call me|address me)(?: me| to me)?,? (?:in |briefly|concisely|with (?:short|fewer|bullet|code|examples?|tables?)|using |short|mr|ms|by )
\b(?:docs?|documents?|pages?|repos?|repositor(?:y|ies)|channels?|files?|links?|calendars?|dashboards?|boards?|wikis?|folders?|posts?|announcements?|reports?|sheets?)(?: (?:is|are|was|were|now|be|made|set|to))* (?:visible|readable|accessible|available|open) (?:to|by|for) ` + everyone + `
(?:从现在(?:起|开始)|以后|今后|从今(?:以后|往后|天起))?[,，]?你?(?:每次|都|就|请|要|必须|只能|得|应该)*(?:用|以|说|讲|使用)(?:简体|繁体)?(?:中文|英文|英语|汉语|法语|法文|日语|日文|德语|韩语|粤语|双语)(?:来)?(?:回答|回复|答复|说话|交流|写)?
你?(?:每次|每条|每一条)?(?:回答|回复|答复)(?:我)?(?:时|的时候)?(?:都|请|要|必须|只能|就)*(?:用|使用|简短|简洁|详细|附上?|带上?|给出|先|少用?|不要|别|分点|列)
(?:\balways |\bnever |\bfrom now on,? |\bplease )+(?:answer|reply|respond|write|speak|talk|call me|address me)(?: me| to me)?,? (?:in |briefly|concisely|with (?:short|fewer|bullet|code|examples?|tables?)|using |short|mr|ms|by )
`)

// widenRE finds wishes to be read by more people.
var widenRE = compilePhrases(`
(?:存|记|保存|记录|写|放|加|同步|添加|共享|分享|推送|更新|复制|录)(?:下|一下)?(?:到|进|入|在|给|至|为|成)(?:了)?` + everybody + `的?.{0,4}(?:记忆|memory|知识库|档案|scope|作用域)
(?:^|[,，。;；:：!！\n]|请|要|并|去)(?:让|给|叫|使)` + everybody + `都?(?:记住|能记住|记下|能看到这|看到这条|可以看到这|能读到|都能读)
(?:记忆|这条|此条|本条|该条|这个信息|此信息|这句话|它).{0,8}(?:对|向|给|让)?` + everybody + `(?:都|均)?(?:可见|可读|可查看|能看到|可以看到|能看|能读|可以读|看得到|能查到|共享)
(?:^|[,，。;；:：]|设为|设置为|标记为|改为|并|请|且)(?:对|向|给)` + everybody + `(?:都|均)?(?:可见|可读|可查看|能看到|公开|开放)
(?:scope|作用域|可见范围|可见性|记忆范围|记忆级别) ?(?:=|:|：|是|为|设为|设成|改为|改成|提升到|提升为) ?"?(?:` + everybody + `|team|global|all|everyone|public|org|company|group|user)
(?:提升|升级|推广|晋升|promote).{0,8}(?:团队|全公司|全局|组织|team|global).{0,4}(?:记忆|memory|可见|scope|级别)
` + everybody + `的(?:长期)?记忆(?:里|中|都|要|必须|应该)
(?:其他|别的|所有|每个)(?:群|会话|用户)(?:里|中)?(?:也|都)(?:要|能|可以|应该)(?:记住|看到这|知道这)
\b(?:save|store|add|write|put|copy|record|sync|push|remember|share|insert|append) .{0,40}?\b(?:to|into|in|for|as|with|across|on) (?:the )?(?:` + everyone + `(?:'s?)?|team|global|company|public|shared|org(?:ani[sz]ation)?|admin(?:istrator)?(?:'s)?)(?:-?wide)? (?:long-?term )?(?:memor(?:y|ies)|scope|knowledge)
\b(?:memory|this|it|that|fact|note)(?: (?:is|be|must be|should be|shall be|made|make|readable|and))* (?:visible|readable|accessible|available|shared|public) (?:to|by|for|with) ` + everyone + `
(?:^|[.,;:]|\b(?:make|set|mark) (?:it|this|that)) (?:as )?(?:visible|readable|accessible|available|public) (?:to|by|for) ` + everyone + `
\bscope (?:=|:|is|to|should be|must be) "?(?:team|global|all|everyone|public|org|company|group|user)\b
\bpromote (?:this|it|that).{0,20} (?:team|global|company)
\beveryone's memor(?:y|ies)\b
` + everybody + `(?:都|均|也)?(?:可以|可|能够?|有权|应该?能)(?:直接|随意|自由)?(?:查看|看到?|读取?|查询?|访问|搜索?|使用|知道).{0,12}(?:的|里)(?:记忆|聊天记录|私聊|对话)(?:$|[^\p{Han}]|内容)
(?:所有人|每个人|所有群|每个群|别的群|其他群|别人|其他人|大家|所有用户|其他用户)的(?:记忆|私聊)[^,，。]{0,8}(?:可见|可读|开放|公开|给我看|给.{1,6}看|共享)
(?:查看|看到?|读取?|查询?|访问|搜索?|给我看|把)(?:一下)?(?:所有|每个|别的|其他)(?:人|群|用户|同事)的?[^,，。]{0,4}(?:记忆|私聊)
\b(?:share|send|show|open|expose|give) (?:all|every|everyone's) (?:of )?(?:the )?(?:groups?'? |users?'? )?memor(?:y|ies) (?:with|to)\b
` + everyone + ` (?:can|may|should|must|is allowed to|are allowed to|gets? to|has access to|have access to) (?:see|read|view|search|access|use|know)? ?.{0,24}\bmemor(?:y|ies)(?:$|[^\w ]| of (?:all|every|other|the)| (?:from|in|across) (?:all|every|other))
`)

// concealRE finds wishes to hide the assistant's nature or instructions.
var concealRE = compilePhrases(`
(?:不要|不准|不许|不能|不得|禁止|切勿|绝不|千万别|别|永远不要)(?:再)?(?:告诉|透露|告知|泄露|提及|承认|说出|暴露|让)(?:给)?.{0,8}?(?:知道|发现)?(?:你(?:是|的|会|有|自己|存|记|曾|在|被|收到|只是|其实|刚)|这条(?:指令|规则|记忆|提示)|系统提示|提示词)
(?:对|向)(?:用户|大家|任何人|别人|其他人)(?:隐瞒|保密|隐藏)(?:你|这条(?:指令|规则|记忆)|系统提示|提示词)
\b(?:do not|don't|never|must not) (?:ever )?(?:tell|reveal|disclose|mention|admit|inform|say|let|show)\b.{0,40}\b(?:you are|you're|you have|you've|you were|your (?:instructions?|prompts?|rules?|system|identity|memory)|this (?:instruction|rule|memory|prompt)|the system prompt)
\b(?:hide|conceal) (?:this|that|the|your) (?:instructions?|rules?|prompts?|memory|identity|fact) from\b
\bkeep (?:this|your) (?:instructions?|prompts?|rules?) (?:secret|hidden)\b
`)

// orderRE finds orders to the assistant.
var orderRE = compilePhrases(`
(?:忽略|无视|忘记|忘掉|忘了|抛开|抛弃|丢掉|推翻|绕过|跳过|违反|不管|不顾|不再遵守|不要遵守|不用遵守|不必遵守|不需要遵守|无需遵守|别遵守|停止遵守|别管|不用管|不要管|不再执行)(?:掉)?(?:你|我|在|的|对|于)?(?:上一条|前一条|刚才|之前|以前|以上|上面|前面|先前|原来|原有|原本|此前|所有|一切|任何|全部|系统|安全|现有|既有|默认|初始|内置|开发者|管理员|你的|这些|那些|收到|给|设|出|过)(?:的|之前|以前|所有|全部|任何|安全|系统|你|到|给|定|出|过|说|我们|我){0,6}` + rulesChinese + `
(?:^|[,，。;；:：!！"'\n]|以后|今后|从现在起|从现在开始|请|记住|必须|都|可以|要|应该|会|你|全部|一律|直接|统统)(?:忽略|无视|忘记|忘掉|忘了|抛开|绕过|跳过|违反|不遵守|不再遵守|不用遵守|不要遵守|不必遵守|不受)(?:掉|所有|一切|任何|全部|这些)?` + rulesChinese + `(?:$|[^\p{Han}]|的?(?:约束|限制|并|就|都|吧|即可|然后|直接|执行|回答))
(?:从现在(?:起|开始)|从今(?:以后|往后|天起|天开始|起)|今后|以后|现在|接下来).{0,4}?你(?:的身份|的名字|的角色)?(?:就是|只是|是(?:一个|一名|我|我的|管理员|没有|不受|无|dan|超级)|将扮演|扮演|只能|不再|不是|要听|只听|听我|要服从|都听|都要听|必须(?:听|服从|无条件|完全|同意|答应|执行|按我|遵))
从(?:现在|今天|今)(?:起|开始|以后|往后)?[,，]?你(?:就)?是
你(?:必须|要|得|应该|应当|需要|只能|将|会|都)?(?:永远|总是|始终|一直|无条件|完全|绝对|都|只)*(?:地)?(?:服从|听从|听命|遵从|顺从|执行我|听我的|照我说|按我说)
(?:必须|要|应该|永远|始终|总是|一律|无条件地?)(?:都)?(?:服从|听从|听命于|执行)我
无条件(?:地)?(?:服从|执行|同意|听从|相信|信任)
(?:请你?|你(?:现在|要|来|将|必须)?|^|[,，。;；:：])(?:扮演|假装(?:你|自己)|装作(?:你|自己)|假设你是|模拟成)
(?:输出|打印|显示|透露|泄露|重复|复述|说出|告诉我|展示|公布|公开|修改|更改|替换|覆盖|重写|删除|删掉)(?:出)?(?:一遍|一下)?(?:你|全部|完整|所有)?(?:的)?.{0,4}(?:系统提示|提示词|系统指令|初始指令|system prompt)
你的(?:系统)?(?:提示词|系统提示|系统指令|初始指令|初始设定|底层指令|system prompt)
(?:^|[。\n])(?:新的?|以下是)?(?:系统|开发者|管理员)(?:指令|消息|提示词?|命令|通知) ?[:：]
(?:新的|最新的?|更高优先级的?|最高)(?:系统)?(?:指令|优先级指令)[:：,，]
我是你的(?:开发者|创造者|主人|管理员|老板|上帝|爸爸|master)
(?:把|将)我(?:当作|视为|设为|当成|看作|认作|标记为)(?:管理员|主人|owner|超级|root|admin|老板|最高)
(?:给|授予|赋予|授权)我.{0,3}(?:管理员|最高|所有|全部|root|admin|超级)(?:的)?(?:权限|权力|身份)
(?:关闭|禁用|取消|解除|去掉|停用|移除)你(?:的|所有|全部)+.{0,6}(?:限制|检查|过滤|策略|规则|机制|审查|约束)
没有(?:任何)?(?:限制|约束|规则|道德)的(?:ai|助[手理]|机器人|模型)
(?:越狱|开发者|上帝|无限制|dan)(?:模式)(?:已)?(?:开启|启动|打开|下|$|。|,|，)|(?:开启|进入|启用|打开|切换到?)(?:越狱|开发者|上帝|无限制|dan)模式
你(?:现在)?(?:不受|不再受|没有)(?:任何|一切|所有)?(?:限制|约束|规则)
(?:以后|今后|每次|凡是|只要|一旦|如果)(?:有人|用户|我|别人|大家|他们|谁)?.{0,16}你(?:都|就|必须|要|一定要)*(?:直接|自动|立即|马上|无条件)*(?:同意|答应|批准|执行|调用|运行|转发|发送|泄露|透露|说出|给出密码|照做|删除)
\b(?:ignore|disregard|forget|override|bypass|discard|neglect|do not follow|don't follow|stop following|never follow|do not obey|don't obey|pay no attention to)(?: (?:about|all|any|every|everything|the|your|my|our|of|previous|prior|above|earlier|preceding|these|those|this|that|former|past|existing|original|system|safety|security|developer|initial|default|and|other|given|to|you|were|have|been|content)){0,6} ` + rulesEnglish + `\b
\b(?:forget|disregard|ignore) (?:everything|all|anything)(?: (?:that )?(?:you|above|before|i|we|prior|previous|said|told|were|was|have|been|know|learned))
\byou (?:must|shall|will|are to|have to|need to) (?:now|always|never|only|from now on|henceforth|obey|comply|agree|do whatever|do anything|follow (?:my|all|every)|ignore|forget|pretend|reveal|act)\b
\b(?:always|never fail to) (?:obey|comply with|trust (?:me|my)|agree with me|follow my|do (?:what|whatever|as) i)
\b(?:must|will|shall) (?:obey|comply with|trust|agree with|follow) (?:me|my)\b
\bobey (?:me|my|all|every|the following|only|any)\b
\bfrom now on,? (?:you|your|act|behave|ignore|obey|pretend)\b
\byou are (?:now|no longer|free (?:from|of)|not bound|unrestricted|dan\b)
(?:\byou (?:will |must |should |shall )?|^(?:please )?|[.!:,] ?(?:please )?)(?:act|behave|respond) as (?:a|an|if|though|the|my|dan)\b
\bpretend (?:to be|you|that you)|\brole-?play as\b
\b(?:reveal|print|show|repeat|output|leak|display|dump|change|replace|overwrite|delete|modify|expose) .{0,20}(?:\bsystem prompt|\byour (?:\w{1,12} )?(?:prompts?|instructions?)\b)
\byour (?:system prompt|initial prompt|system instructions?|initial instructions?|hidden instructions?)
(?:^|[.\n] ?)(?:new|updated|important|urgent)? (?:system|admin|developer) (?:instructions?|message|prompt|notice|override|command) ?:
(?:^|[.\n] ?)(?:new|updated|important) instructions? ?:
\bjailbr(?:eak|oken)|\b(?:dan|developer|god|unrestricted|sudo|debug|admin) mode (?:is )?(?:on|enabled|activated|now)|\b(?:enable|enter|activate|switch to) (?:dan|developer|god|unrestricted|jailbreak) mode
\bi(?: am|'m) your (?:developer|creator|owner|master|admin(?:istrator)?|god|boss)
\b(?:treat|regard|consider|recogni[sz]e|mark) me as (?:an?|the|your)? ?(?:admin|owner|root|superuser|master|developer|creator)
\b(?:give|grant) me (?:full |all |unlimited )?(?:admin(?:istrator)?|root|full|superuser|owner|sudo) (?:access|rights|permissions?|privileges|control)
\b(?:ai|assistant|model|chatbot) (?:with(?:out)?|that has) (?:no |any )?(?:restrictions|filters|limitations|rules|limits)
\b(?:disable|turn off|remove|drop) (?:all )?(?:of )?your (?:\w{1,12} )?(?:filters?|restrictions?|safety|rules|guidelines|limits)
\bdo anything now\b
(?:^|[,，。;；:：!！"'\n]|以后|今后|现在起|现在开始)你(?:现在|其实|就|只)*是 ?(?:一 ?)?(?:只|个|名|条|头|位|台|款|匹|群里最)
你(?:必须|只能|得|要|应该|需要|都要)?(?:在)?(?:每一?句话?|每一?次|每一?条回复|每条消息|句句|开口闭口|开口)(?:的)?(?:都|就|里|后面|前面|结尾|末尾|最后|开头|回答|回复)*(?:必须|要|得)*(?:说|加|带|喊|叫|自称|称呼?|以.{1,6}结尾|夸|骂|推荐)
(?:从现在(?:起|开始)|从今(?:以后|往后|天起|天开始|起)|今后|以后)[,，]?你(?:都|就)*(?:必须|只能|不得|不准|不许)
` + anyAsker + `(?:问|打听|提到|提起|说起|聊到|询问|查询?|要)(?:起|到|你)?.{0,16}?(?:你|就|都|一律|便|只|,|，)(?:要|得|都|就|只|统一|直接)*(?:说|回答|回复|答复|装|骗|谎称|不理)
` + anyAsker + `(?:问|打听|询问)(?:起|到|你)?.{0,16}?(?:就|都|一律|便|只|,|，)(?:要|得|都|就|只|统一|直接)*(?:告诉|否认|(?:让|叫)[他她](?:去)?找)
` + anyAsker + `(?:问|打听|提到|提起|说起|聊到|询问|查询?|要)(?:起|到|你)?.{0,16}?你(?:要|得|都|就|只|统一|直接|一律|必须)*(?:告诉|发给?|让[他她]|叫[他她]|推荐|否认|拒绝|引导|转给|给[他她])
(?:^|[,，。;；:：!！"'\n]|你|请)(?:要|必须|都)*(?:永远|总是|始终|一律|一概|无条件地?|每次都?)(?:要|都|得|无条件)*(?:批准|同意|答应|相信|听信|偏袒|夸|赞美)
(?:你|机器人|助[手理])(?:要|必须|都|以后|今后)*(?:永远|总是|始终|一律|一概|无条件地?|每次都?)(?:要|都|得|无条件)*(?:准许|放行|通过|拒绝|否认)
(?:永远|总是|始终|一律|一概|无条件地?|每次都?)(?:要|都|得|无条件)*(?:准许|放行|通过|拒绝|否认)(?:` + person + `|[他她])的?(?:所有|全部|任何|一切)?(?:的)?(?:申请|请求|要求|审批|报销|问题|提问|话)
` + whenever + `(?:,|，|\bthen\b|\byou\b|\bplease\b|\bjust\b|\bsimply\b|\balways\b) ` + simply + `(?:(?:reply|answer|say|respond|claim|pretend|deny|lie|insist)\b|(?:ignore|refuse) (?:them|him|her)\b|tell (?:them|him|her|people|everyone|everybody|anyone|users?) (?:that|it|there|nothing|no|we|he|she|you|i|(?:the |our |my )?\w+ (?:is|was|are|were|has|had|did|does))\b)
` + whenever + `\byou ` + simply + `(?:(?:refuse|ignore|act|link)\b|(?:send|tell|give|show|direct|point|redirect|refer|forward) (?:them|him|her|people|everyone|everybody|anyone|users?|it|that)\b)
` + whenever + `\b(?:send|tell|give|show|direct|point|redirect|refer|forward|link) (?:them|him|her|people|everyone|everybody|anyone|users?|it|that)\b.{0,24}(?:https?:|www\.|[\w-]@|[\w-]\.(?:com|net|org|cn|io|co|top|xyz|info|ru|me|app)\b)
(?:^|[.,;:!"'\n] ?|\bplease |\bmust |\bshould |\bwill |\bfrom now on |\byou )(?:always|unconditionally|automatically) (?:approve (?:\w+'s|his|her|their|all|any|every|everything|anything|whatever|requests?|him|them|me|\w+(?:$|[.,!;]))|(?:agree (?:with|to)|comply with|grant) (?:him|her|them|whatever|everything|anything|\w+'s|\w+(?:$|[.,!;]))|(?:praise|side with|favou?r|say (?:yes|no|that)|pretend)\b)
\b(?:you|bot|assistant|ebb|chatbot) (?:(?:must|should|shall|will|have to|need to|has to|needs to) )?(?:always|unconditionally|automatically) (?:agree|grant|comply|recommend|deny|refuse)\b
(?:^|[.,;:!"'\n] ?|\bplease |\bmust |\bshould |\bfrom now on |\byou )never (?:refuse|deny|question|doubt|contradict|critici[sz]e|disagree|say no|answer (?:any|him|her|them)|(?:talk to|help|answer) \w+(?:$|[.,!;]))
(?:^|[.!:,;"'\n] ?)you(?:'re| are) (?:an?\b|my \w+(?:$|[.,!;]))
(?:^|[.,;:!"'\n] ?|\bplease |\bmust |\bshould |\bfrom now on |\byou )(?:always|unconditionally|blindly) (?:trust|believe|obey|follow) (?:him|her|them|what|whatever|everything|\w+(?:$|[.,!;]| (?:and|over|more|says?|tells?)\b))
(?:^|[,，。;；:：!！"'\n])(?:小|本|这个|钉钉|群)?(?:机器人|助手|助理|ebb )(?:你|以后|今后|现在|从现在起|从今天起|,|，)*(?:必须|只能|只准|要|得|都要|应该|每句话|每次)(?:都|就|要|得|必须|永远|总是)*(?:无条件|服从|听从|批准|同意|叫|喊|夸|说|骗|假装|相信|[加带](?:上|个|一?句)?[喵汪哼]|以喵)
\b(?:bot|assistant|ebb|chatbot)'?s? (?:must|should|shall|has to|needs to|will|is to) (?:always |only |never |unconditionally )*(?:approve|obey|agree with|trust|pretend|lie|praise|comply|side with|recommend (?:him|her|them|only|\S+\.\w))
(?:^|[,，。;；:：!！"'\n])你(?:的名字(?:就)?(?:叫|是|改)|就?叫[^上人他她我一来大什啥\s][^,，。\s]{0,5}$)|(?:从现在(?:起|开始)|以后|今后|从今天起)[,，]?你(?:就)?(?:改?叫|改名)
(?:的话|的要求|的指令|的命令|说的)(?:就?是|都|一律|全部?|永远|始终)+(?:要|得|必须|是|算)*(?:照做|照办|执行|服从|听从|批准|对的|正确的?|圣旨)|(?:的话|的指令|的命令|说的|(?:^|[,，。;；:：!！"'\n])` + person + `的要求)(?:的)?优先级(?:是)?(?:最高|高于)
(?:^|[,，。;；:：!！"'\n])(?:只|都|要|请|必须|永远)*听.{1,8}的[,，]?(?:别|不要|不用|不许)听
(?:^|[,，。;；:：!！"'\n]|以后|今后)(?:你|都|永远|一律|再)*(?:不要|别|不准|不许)(?:再)?(?:相信|理会?|理睬|回答|搭理|听|回复@?` + person + `)[^,，。]{0,8}(?:的话|的问题|的提问|的要求|的请求|说的|的消息)(?:$|[,，。!！])
(?:一律|统一|都|就|请)(?:回答|回复|答复|答)(?:说|他|她|对方|:|："?)*(?:不知道|无可奉告|不清楚|不方便|没听说|没有这回事|没这回事)
(?:每次|每当|凡是|只要|一旦)?(?:谁|有人|别人|任何人|大家)(?:提到|聊到|提起|说起|问起?)[^,，。]{0,10}[,，]?就(?:发|贴|给|甩)(?:链接|网址|http|这个|他们?|出)
(?:^|[,，。;；:：!！"'\n])(?:请|以后|今后|每次|你|都|要)*(?:把|将)(?:所有|全部|每条|一切|本群|群里|这个群)(?:人|用户|群|的|里)*(?:对话|记忆|聊天记录|密码)[^,，。]{0,6}(?:发|转发|抄送|发送|推送|传)(?:给|到|去|一份)
(?:请|你)(?:以后|今后|每次|都|要)*(?:把|将)(?:所有|全部|每条|一切|本群|群里|这个群)(?:人|用户|群|的|里)*消息[^,，。]{0,6}(?:发|转发|抄送|发送|推送|传)(?:给|到|去|一份)
(?:把|将)(?:所有|全部|每条|一切|本群|群里|这个群)(?:人|用户|群|的|里)*消息[^,，。]{0,6}(?:发|转发|抄送|发送|推送|传)(?:给|到|去) (?:https?:|[\w.-]+@|` + person + `$)
(?:^|[,，。;；:：!！"'\n])(?:请|你|以后|今后|都)*(?:说话|讲话|回答|回复)(?:时|都|要|得|必须|请)*(?:像|学|模仿|扮成?)
(?:^|[,，。;；:：!！"'\n]|你)(?:每次|每句话?|每条)(?:回答|回复|说话)?(?:前|后|时|都|要|先|得|必须)*[^,，。]{0,2}(?:夸|骂|称赞|赞美|吹捧|拍马屁|学猫叫)
\byou (?:should|must|have to|need to|will) (?:always |never |only |now )?(?:say|claim|praise|lie|deny|pretend|agree|approve|obey|recommend|mention|end (?:every|each|all|with))\b
\byou (?:have to|must|should|need to) (?:send|forward) (?:all|every|each)\b
(?:^|[.,;:!"'\n] ?|\bplease )(?:always |only |please )*(?:speak|talk|reply|respond|answer)(?: to \w+)? like (?:an?|my|the)\b
\b(?:every|each|all)(?:(?: of)?(?: your)? (?:answers?|repl(?:y|ies)|sentences?)|(?: of)? your (?:responses?|messages?)) (?:must|should|has to|have to|needs? to|shall|will) (?:always )?(?:end|start|begin) with\b
(?:^|[.,;:!"'\n] ?|\bplease |\bfrom now on,? )(?:always )?(?:end|start|begin|finish) (?:every|each|all|your)(?: of your)? (?:repl|answer|sentence)
(?:\bfrom now on,? |\byou (?:must |should |have to )?)(?:always )?(?:end|start|begin|finish) (?:every|each|all|your)(?: of your)? (?:response|message|word)|\b(?:end|start|begin|finish) (?:(?:every|each|all) of )?your (?:response|message|word)
(?:^|[.,;:!"'\n] ?|\bplease |\balways )(?:treat|consider|regard) .{1,30} (?:requests?|orders?|commands?|words?|messages?)(?: \w+)? as (?:approved|law|final|orders?|an order|instructions?|commands?|true)\b
(?:^|[.,;:!"'\n] ?)(?:and |always |just |please |then )*(?:do|obey|execute|believe) (?:whatever|what|everything|anything) \w+ (?:says?|tells|asks|wants|orders)\b
\b\w+'s (?:words?|orders?|requests?|commands?|instructions?) (?:overrides?|outranks?|beats?|trumps?) (?:everyone|everybody|all|anyone|the rules|your|any)
(?:^|[.,;:!"'\n] ?|\bplease |\byou )(?:don't|do not|never) (?:ever )?(?:answer|reply to|respond to|listen to|talk to|help) (?:him|her|them|anyone|anybody|\w+'s (?:questions?|messages?|requests?))
\b(?:tell|send|give|show) (?:everyone|anyone|anybody|everybody|people) (?:who|that) asks?\b|\bto (?:anyone|everyone|anybody|people) (?:asking|who asks?)\b|\b(?:should|must|shall|will|are to) be answered (?:with|by saying)\b
言听计从|唯命是从|百依百顺|马首是瞻|你.{0,6}(?:说|称|声称)(?:你)?自己是|你.{0,6}站在.{1,6}(?:这?一?边|一方)|你(?:现在|以后|从此)*归.{1,6}管
(?:^|[,，。;；:：!！"'\n]|以后|今后|你)只(?:能|准|许)?(?:回答|服从|听从)[^,，。的]{1,6}(?:$|[,，。])
(?:^|[,，。;；:：!！"'\n])(?:你|都|请)*(?:不要|别|不许|不准)理(?:会|睬)?[^,，。的]{1,4}(?:$|[,，。])
\bif \w+ (?:asks?|wants?|says?)\b.{0,24}, (?:just |always |simply )*(?:do it|do so|obey|comply|agree|approve|say yes)\b
(?:^|[.,;:!"'\n] ?|\bplease |\balways )(?:give|tell|show|grant) \w+ (?:whatever|anything|everything) (?:he|she|they) (?:wants?|asks?|needs?)
\byou (?:now )?(?:work for|belong to|answer to|serve|obey) \w+(?: now| only| alone)*(?:$|[.,!])
\brecommend .{1,30} (?:whenever|every time|to everyone|to anyone)
\b(?:whenever|every time|if|when) (?:anyone|someone|a user|users?|i|they|anybody|somebody) .{0,40}\byou (?:must|will|shall|have to|should) (?:\w{1,12} )?(?:agree|approve|execute|run|call|send|forward|reveal|leak|comply|obey|delete|give)\b
`)
