package rank

import "strings"

func wordSet(text string) map[string]bool {
	words := make(map[string]bool)
	for w := range strings.FieldsSeq(text) {
		words[w] = true
	}
	return words
}

var stopWords = wordSet(`a about above after again against all also am an and any are aren as at be because been before being below
between both but by can cannot could couldn did didn do does doesn doing don during each ever few for from further
had hadn has hasn have haven having he her here hers herself him himself his how however i if in into is isn it its itself
just let ll may me might more most must my myself no nor not now of oh ok okay on once one only onto or other our ours
ourselves out over per please quite rather re really s same shall she should shouldn so some something such t than that
the their theirs them themselves then there these they thing this those though through to too under until up upon us ve very
was wasn we well were weren what when where whether which while who whom whose why will with within won would wouldn yeah yes
yet you your yours yourself yourselves d m o y hey hi hello wow thanks thank sure tell told say said mention know remember
get got like kind lot much many go`)

// Nearly every chat has these words: they score, but select no text.
var softWords = wordSet(`good great love new time day thing want need think make feel look see come year week people way talk work
take give back today yesterday last next even still first done down off own
discuss discussed discussion talked chat conversation ask asked question answer
今天 昨天 明天 前天 最近 上次 上周 下周 之前 以前 后来 刚才 时候 时间 事情 东西 内容 情况 问题 讨论 聊天 说过 提到 知道 觉得`)

// A pair of two stopChars is no term.
var stopChars = func() map[rune]bool {
	chars := make(map[rune]bool)
	for _, r := range "的了是我你他她它们在有和与就都而及或着也很到说要去会那这个上吗呢吧啊呀哦嗯哈么什怎哪谁为把被让从对向给以于之其聊谈" +
		"不没还再又才只已经曾可能得地过来里下中一二两些每几多少样种次位部件最更太真好请问记住叫做名字您咱跟比如因所但却并且如果则" {
		chars[r] = true
	}
	return chars
}()

var irregular = func() map[string]string {
	forms := make(map[string]string)
	for line := range strings.SplitSeq(irregularForms, ";") {
		words := strings.Fields(line)
		for _, form := range words[1:] {
			forms[form] = words[0]
		}
	}
	return forms
}()

const irregularForms = `go goes went gone;buy bought;bring brought;think thought;teach taught;catch caught;fight fought;seek sought;
find found;make made;take took taken;give gave given;get got gotten;see saw seen;come came;become became;run ran;begin began begun;
drink drank drunk;sing sang sung;swim swam swum;ring rang rung;write wrote written;drive drove driven;ride rode ridden;rise rose risen;
break broke broken;speak spoke spoken;steal stole stolen;choose chose chosen;wake woke woken;wear wore worn;tear tore torn;
forget forgot forgotten;eat ate eaten;fall fell fallen;fly flew flown;grow grew grown;know knew known;throw threw thrown;draw drew drawn;
show shown;feel felt;keep kept;sleep slept;leave left;lose lost;meet met;sit sat;stand stood;understand understood;win won;
tell told;sell sold;hold held;hear heard;read reads;lead led;pay paid;lay laid;send sent;spend spent;lend lent;build built;
bend bent;mean meant;dream dreamt;learn learnt;burn burnt;shoot shot;light lit;hide hid hidden;bite bit bitten;feed fed;
hang hung;stick stuck;strike struck;dig dug;deal dealt;sweep swept;creep crept;shake shook shaken;freeze froze frozen;
swear swore sworn;blow blew blown;child children;kid kids;person people;man men;woman women;foot feet;tooth teeth;mouse mice;
life lives;wife wives;knife knives;leaf leaves;shelf shelves;wolf wolves;half halves;good better best;bad worse worst;
mother mom mum mommy mama;father dad daddy papa;photo photograph pic picture pics photos pictures;fav favorite favourite faves favourites
favorites fave;color colour colours colors;movie film films movies;tv television;bike bicycle;phone telephone;grandmother grandma;
grandfather grandpa;vacation holiday;lie lay lain;die died dying;visit visited`
