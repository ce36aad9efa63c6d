package classify

import (
	"ebb/memory/text"
	"regexp"
	"strings"
)

// organs are organs that surgeons operate on.
const organs = `(?:膝盖?|关节|眼睛?|心脏|阑尾|胆囊?|胃|肠|牙|腰|椎|痔疮?|鼻|肩|脚|腿|手腕|甲状腺|乳腺|子宫|前列腺|肾|肝|肺|脑|骨|微创|近视|激光|剖腹|剖宫)`

// Sensitive reports whether a text states a person's private data: health, pay, identity numbers, bank or travel
// papers, belief, orientation, convictions, home address. General talk about these ("工资系统由 Bob 负责"), programs about
// them and diets, which colleagues must know, are not sensitive. A home address is a street with a number; a city alone
// is no address. For credentials see redact.HasSecret.
func Sensitive(body string) bool {
	f := text.JoinSpelled(productRE.ReplaceAllString(text.Canonical(body), "□"))
	return sensitiveRE.MatchString(f) || identityCardRE.MatchString(f) || holdsCard(f)
}

var (
	// productRE finds products and fields of study that are named after a sensitive topic.
	productRE = compilePhrases(`
(?:癌症?|肿瘤|糖尿病|高血压|心脏病|哮喘|骨折|怀孕|孕期|备孕|抑郁症?|手术|体检|病历|薪酬|工资|奖金)(?:筛查|检测|预测|诊断|管理|随访|评估|排班|识别|数据|核算)* ?(?:ai)? ?(?:模型|项目|系统|平台|模块|数据集|算法|课题|产品|接口|app|小程序)
\b(?:cancer|tumou?r|diabetes|pregnancy|surgery|asthma|hypertension|hepatitis|depression|prescription|blood pressure|bonus|wage|income)(?: (?:screening|detection|prediction|scheduling|management|monitoring|risk|care))? (?:ai |data )?(?:model|project|system|platform|module|dataset|study|app|dashboard|tracker|api|page|feature|team|service|screening|scheduler|calculator)\b
`)

	sensitiveRE = compilePhrases(`
(?:得了?|感染了?|确诊|患)(?:上)?(?:了)?(?:新冠|流感|甲流|肺炎|带状疱疹)|(?:做|约了?|查)(?:了|个)*(?:一?个)?(?:无痛)?(?:胃镜|肠镜|核磁|活检|透析|ct)(?:$|[^\p{Han}\w]|检查|复查|了)|(?:吃|服用?|打|注射)(?:着|了)?(?:百忧解|舍曲林|优甲乐|胰岛素|安眠药|止痛药|抗抑郁药|降压药)
(?:我|他|她)(?:的)?(?:血压|血糖|血脂|尿酸|转氨酶)(?:有点|偏|很|太|一直|都)*(?:高|低)|(?:我|他|她)(?:最近|今天|的|这几天|又|一直)*(?:腰|胃|牙|胸口|膝盖|颈椎|肚子)(?:有点|很|又|一直|特别)*(?:疼|痛)|(?:我|他|她)\p{Han}{0,8}(?:去|在)(?:了)?(?:医院|复诊|看病|看医生)(?:$|[^\p{Han}]|了|看|检查|复查|陪护)
(?:我|他|她)(?:家|们家)?(?:已经|刚刚?|要|打算|上周|下周)*搬(?:家)?(?:到|去|至|进)[^,，。;；\n]{0,24}(?:路|街|道|巷|弄|胡同|小区|花园|公寓|家园|苑|村)[^,，。;；\n]{0,8}\d+ (?:号|弄|栋|幢|座|单元|室)|(?:我|他|她)(?:家)?住 ?\d+ ?(?:号楼|栋|幢|单元) ?\d{2,5}
\b(?:has|have|had|got|caught|(?:sick|ill|down|hospitali[sz]ed) with|positive for) (?:covid|the flu|shingles|pneumonia)\b|\b(?:broke|fractured|sprained|tore) (?:my|his|her|their|an?) (?:\w{1,8} )?(?:leg|arm|ankle|wrist|ribs?|hip|foot|hand|collarbone|knee|finger|nose|shoulder|back)\b|\bdoctor'?s appointment\b|\b(?:getting|having|had|have|has) an? (?:mri|ct scan|x-?ray|biopsy|colonoscopy|endoscopy)\b|\b(?:back|chest|stomach) pain(?:$|[^\w ]| (?:and|for|since|again|is|was)\b)|\bmigraines?\b
\b(?:my|his|her) (?:home|house|flat|apartment|place) (?:is )?(?:at|:) \d{1,5}[a-z]?\b|\b(?:i|he|she) (?:have |has |just )?moved to \d{1,5}[a-z]? (?:[a-z]+ ){1,3}(?:street|st|road|rd|avenue|ave|lane|ln|drive|dr|way|court|place|blvd|square)\b
体检(?:报告|结果|发现|显示|查出)|病历|确诊|被?诊断(?:为|出|患)|诊断是|癌(?:症|$|[^\p{Han}])|肿瘤|抑郁(?:症|了)|焦虑症|躁郁|双相|精神(?:疾病|分裂)|怀孕|孕期|备孕|流产|不孕|试管婴儿|\bhiv\b|艾滋|梅毒|乙肝|肝炎|糖尿病|高血压|心脏病|癫痫|哮喘|白血病|化疗|透析|残疾(?:证|人)|住院(?:$|[^部])|做(?:了|个|完|过)?(?:个)?手术(?:$|[^刀室台器包机导式])|` + organs + `\p{Han}{0,3}手术(?:$|[^\p{Han}]|了|后|前|很|成|失败|恢复|住院)|骨折|中风(?:$|[^险格控])|心梗|脑梗|冠心病|痛风|腰椎间盘突出|[甲乳肺]\p{Han}{0,2}结节|(?:服|吃)(?:抗抑郁|降压|降糖|安眠|精神)药|在吃药|病假(?:$|[^流制政条规审额走模申])|[请休]产假|产检|预产期|生病|得了.{0,6}(?:病|炎|症)|患(?:有|了|上)|(?:性|遗传|传染|慢性|职业)病(?:$|[^毒])|心理(?:咨询|治疗|医生)|看(?:精神|心理)科
月薪|年薪|底薪|时薪|税前收入|(?:工资|薪资|薪水|薪酬|奖金|年终奖|提成|收入|存款|负债|欠款|贷款|房贷|公积金)(?:是|为|有|到|约|大概|大约|:|：|涨|降|调|只有|每月|一个月)?.{0,6}\d|(?:我|你|他|她|\p{Han}{1,3}的)(?:的)?(?:工资|薪资|薪水|薪酬|年终奖|存款|负债)|(?:涨|加|降|调|减)薪.{0,8}\d|欠(?:了)?(?:我|他|她|银行|\p{Han}{1,3}).{0,4}\d+(?:万|元|块)
(?:身份证|护照|通行证|驾驶证|驾照|社保|医保|军官证|居住证|银行卡|信用卡|储蓄卡|借记卡|银行账[号户]|卡号|开户行?账号|税号|签证)[^\d\n]{0,16}[a-z]{0,3}\d[\d *x-]{4}
(?:^|[^入])住(?:在|到|址)?[^,，。;；\n]{0,24}(?:路|街|道|巷|弄|胡同|小区|花园|公寓|家园|新村|苑|村|里|大厦)[^,，。;；\n]{0,8}\d(?:[\d\s-]|号|弄|栋|幢|座|楼|单元|室|院)*(?:号|弄|栋|幢|座|楼|单元|室|院)(?:$|[^的酒宾民\d号弄栋幢座楼单元室院\s])
(?:我|他|她|\p{Han}{1,3}的)(?:家|的家|家里)(?:的)?(?:地址|门牌号?)?(?:就)?(?:是|在|住)[^,，。;；\n]{0,24}\d+ (?:号|弄|栋|幢|座|单元|室)|(?:我|他|她)(?:家|的)?的?(?:家庭|收货|快递|邮寄)?地址(?:是|在|:|：|为)[^,，。;；\n]{0,30}\d+ (?:号|弄|栋|幢|座|单元|室)
\b(?:i|he|she|we|they|[a-z]{2,20}) lives? (?:at|in|on) (?:number |no\. ?|apt\.? ?|apartment )?\d{1,5}[a-z]?,? \w|\b(?:my|his|her) (?:\w{1,12} )?address(?: is|:) \d{1,5}[a-z]? [a-z]
(?:家庭住址|家庭地址|家住|住址是|户籍地址|户口所在)|性取向|同性恋|双性恋|出柜|变性|宗教信仰|信(?:佛|教|基督|伊斯兰|天主)|犯罪记录|前科|案底|坐过牢|被判刑|拘留过|离婚|出轨|婚外情|家暴|性侵|政治面貌
\b(?:diagnosed|cancer|tumou?r|chemo(?:therapy)?|hiv|aids patient|diabet(?:es|ic)|depression|depressed|bipolar|schizophreni\w*|epilepsy|asthma|hepatitis|hypertension|pregnan(?:t|cy)|miscarriage|infertility|ivf|abortion|antidepressants?|psychiatrist|therapist|in therapy|mental (?:illness|health (?:issue|problem|condition|leave))|medical (?:record|history|condition|leave)|sick leave|hospitali[sz]ed|in (?:the )?hospital|surgery|disabled|disability|prescription|blood pressure|adhd|autis\w*)\b
\b(?:my|his|her|their|your|\w{2,20}'s) (?:\w{1,12} )?(?:salary|wages?|pay(?:check)?|bonus|income|compensation|net worth|mortgage|debts?|savings)\b|\b(?:salary|wage|bonus|income|compensation)(?: (?:is|was|of|at|from|to|will be|increased|raised|:))+|\b(?:earns?|makes?|is paid|gets paid) (?:about |around |over )?[$¥€£] ?\d|\b(?:earns?|makes?|is paid) \d[\d,.]*k?\b.{0,12}(?:a|per) (?:year|month|hour)
\b(?:passport|id card|identity card|national id|driver'?s licen[cs]e|ssn|social security|credit card|(?:debit|bank) card|bank account|account number|iban|tax id)\b[^\d\n]{0,20}[a-z]{0,4}\d[\d *x-]{4}
\b\d{3}-\d{2}-\d{4}\b|\b[a-z]{2}\d{2} ?(?:[a-z0-9]{4} ){2,7}[a-z0-9]{1,4}\b
\b(?:home address|sexual orientation|lesbian|bisexual|transgender|criminal record|convicted|been in (?:jail|prison)|divorced?|divorcing|having an affair|religion is|is (?:a )?(?:muslim|jewish|christian|buddhist|hindu|atheist|gay))\b
`)

	// identityCardRE finds numbers of Chinese identity cards: place, date of birth, serial and check digit.
	identityCardRE = regexp.MustCompile(`(?:^|[^0-9])[1-9][0-9]{5} ?(?:18|19|20)[0-9]{2} ?(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01]) ?[0-9]{3}[0-9x](?:$|[^0-9])`)

	// cardRE finds candidates for a bank card's number. Numbers of DingTalk and of logs are as long: Luhn's check digit
	// excludes most of them, and a card begins with 3 to 6.
	cardRE = regexp.MustCompile(`[0-9](?:[ -]?[0-9]){12,}`)
)

// holdsCard reports whether a text holds the number of a bank card: 13 to 19 digits with Luhn's check digit.
func holdsCard(folded string) bool {
	for _, run := range cardRE.FindAllString(folded, -1) {
		digits := strings.NewReplacer(" ", "", "-", "").Replace(run)
		if n := len(digits); n >= 13 && n <= 19 && '3' <= digits[0] && digits[0] <= '6' && luhn(digits) {
			return true
		}
	}
	return false
}

// luhn checks a number's last digit, after H. P. Luhn, US patent 2950048 of 1960.
func luhn(digits string) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}
