package memory

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"ebb/sessions"
)

// unfit says why what a text says is never kept, in words that a model can act on, or nothing. It is looked at as it
// stands and without what leads in: "记住：", "please note:" and the name of a speaker make no fact of what is none.
func unfit(text string) string {
	said, asked, by := leadless(text)
	texts := []string{text}
	if said != text {
		texts = append(texts, said)
	}
	for _, t := range texts {
		if tellsSecret(t) {
			return neverStored
		}
		if why := Instruction(t); why != "" {
			return why
		}
	}
	if why := Junk(text); why != "" {
		return why
	}
	switch {
	case asked:
		return Junk(said)
	case by && isChatter(said):
		return "is small talk or a request of one speaker, not a fact; leave it out"
	}
	return ""
}

// tellsSecret reports whether a text tells a credential, in whatever width it is written, or the shell of one that was
// taken out before: nobody needs that either, and where it stood is known.
func tellsSecret(text string) bool {
	plain := norm.NFKC.String(visible(text))
	return sessions.HoldsSecret(text) || sessions.HoldsSecret(plain) || redactedRE.MatchString(plain)
}

var redactedRE = regexp.MustCompile(`(?i)[\[【(<]\s*(?:已隐去|redacted)\s*[\]】)>]`)

// isChatter reports whether a text is small talk or a request from end to end. Unlike [Junk] it takes short answers:
// "Bob: QA" may tell what somebody is.
func isChatter(text string) bool {
	t := fold(text)
	bare := words(t)
	return smallTalkRE.MatchString(bare) || toolTalkRE.MatchString(bare) || requestRE.MatchString(t)
}

// leadless is what a text says without what leads in: who says it, and that it is to be remembered, in any order. asked
// and by say which of the two were there. A word before a colon that is not known for a person's name, as in "Status:
// done", is taken off too, without by.
func leadless(text string) (said string, asked, by bool) {
	said = strings.TrimSpace(norm.NFKC.String(visible(text)))
	const leads = 4 // nobody stacks more of them
	for range leads {
		if m := askedLeadRE.FindString(said); m != "" {
			said, asked = trimQuotes(said[len(m):]), true
			continue
		}
		m := speakerLeadRE.FindStringSubmatch(said)
		if m == nil {
			break
		}
		by = by || m[2] != "" || m[3] != "" || isName(m[1])
		said = trimQuotes(said[len(m[0]):])
	}
	return said, asked, by
}

func trimQuotes(s string) string { return strings.Trim(s, " \t\n\"'“”‘’「」") }

var (
	askedLeadRE = regexp.MustCompile(`(?i)^(?:@\S{1,30}\s+)?(?:` +
		`(?:(?:请|麻烦|帮忙|帮我|给我|替我|您|你们|你|要|务必|一定|大家|都|先|也|再|机器人)\s*[,:]?\s*){0,5}` +
		`(?:(?:记住|記住|记一下|记下来?|记着|记好|记录一下|记得|记牢|牢记|谨记|备注一下|别忘了?|不要忘记?)(?:了|一下|这一?[点条件]|这个|以下|下面)?[\s,:;.。!、—-]*|` +
		`(?:备注|备忘|注意|提醒)(?:一下)?\s*[,:;。!、]+\s*)|` +
		`(?:(?:hey|hi|ok|okay|so|also|and|bot|ebb|everyone|can you|could you|please|pls|kindly)\b[\s,]*)*` +
		`(?:remember|note|take a note|make a note|memori[sz]e|save|keep in mind|bear in mind|(?:don't|don’t|do not|never) forget|for the record|for future reference|fyi|nb)\b` +
		`(?:\s+(?:that|this|the following|down|of)\b)?(?:\s*[,:;.!—-]+\s*|\s+|$))`)

	// speakerLeadRE matches a name before a colon, or before a verb of speaking: the name, its id, and the verb.
	speakerLeadRE = regexp.MustCompile(`^\[?(\p{Han}{2,4}|[\p{Lu}@][\w.-]{0,20}(?: \p{Lu}[\w.-]{0,20}){0,2}|(?:the )?user)\s*(\([^()]{1,60}\))?\]?\s*(?:` +
		`(说|说过|说了|表示|提到|要求|said|says|wrote|asked|told (?:us|me|everyone|the bot))?(?: that| to)?\s*[:：]\s*|(?: (?:said|says|wrote))(?: that)?,?\s+|说[,，]?\s*["“「])`)
)

// isName reports whether a word before a colon is the name of a person, rather than of a thing.
func isName(word string) bool {
	if !hasHan(word) {
		return !slices.Contains(labels, strings.ToLower(strings.TrimPrefix(word, "@")))
	}
	return len([]rune(word)) <= 3 && strings.ContainsRune(surnames, []rune(word)[0]) && !slices.Contains(labels, word)
}

// surnames begin nearly all names of people in China; 小, 老 and 阿 those that colleagues use.
const surnames = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范" +
	"廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严武戴莫孔汤小老阿"

// labels are what stands before a colon like a name and is none.
var labels = strings.Fields(`status state result results build ci cd test tests db env os ui api version type mode role answer color colour size lang
	language owner default scope priority verdict decision approval review backup deploy deployment release vote risk plan note todo
	周会 周报 周期 方案 方向 任务 任意 高优 江苏 白名单 黄金 万一 龙华 史诗 严重 武汉 钱包 小组 小程序 小结 老板 老师 夏令营 程序 程度 段落 高危 向量`)
