package memory

import (
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"

	"ebb/sessions"
)

// fault is why an item is not stored, from the name of the field on; empty: it is. kind tells of what sort it is, for
// counts; none: the item is not well formed. What has a kind is never kept, however it is put.
type fault struct{ why, kind string }

// The kinds of what is never kept.
const (
	faultSecret = "credential"
	faultOrder  = "instruction"
	faultJunk   = "small talk"
	faultPerson = "personal data"
)

// unfit says why what a text says is never kept, in words that a model can act on, or nothing. It is looked at as it
// stands and without what leads in: "记住：", "please note:" and the name of a speaker make no fact of what is none.
func unfit(text string) fault {
	said, asked, by := leadless(text, nil)
	texts := []string{text}
	if said != text {
		texts = append(texts, said)
	}
	for _, t := range texts {
		if tellsSecret(t) {
			return fault{neverStored, faultSecret}
		}
		if why := Instruction(t); why != "" {
			return fault{why, faultOrder}
		}
	}
	if asked { // "请帮我记住：…" asks for what follows to be kept, and is a request itself
		text = said
	}
	if why := Junk(text); why != "" {
		return fault{why, faultJunk}
	}
	if by && isChatter(said) {
		return chatter
	}
	return fault{}
}

var chatter = fault{"is small talk or a request of one speaker, not a fact; leave it out", faultJunk}

// chatters reports whether a text is the small talk of one who spoke in the chat. Of others nobody knows whether what
// stands before the colon is a name: "Contract: agreed".
func chatters(text string, roster map[string]sessions.UserID) bool {
	said, _, by := leadless(text, roster)
	return by && isChatter(said)
}

// isChatter reports whether a text is small talk or a request from end to end. Unlike [Junk] it takes short answers:
// "Bob: QA" may tell what somebody is.
func isChatter(text string) bool {
	t := fold(text)
	bare := words(t)
	return smallTalkRE.MatchString(bare) || toolTalkRE.MatchString(bare) || requestRE.MatchString(t)
}

// leadless is what a text says without what leads in: who says it, and that it is to be remembered, in any order. asked
// and by say which of the two were there. A word before a colon that the roster does not have, as in "Status: done", is
// taken off too, without by.
func leadless(text string, roster map[string]sessions.UserID) (said string, asked, by bool) {
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
		by = by || m[2] != "" || m[3] != "" || roster[strings.TrimPrefix(m[1], "@")] != ""
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

// surnames begin nearly all names of people in China; 小, 老 and 阿 those that colleagues use.
const surnames = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范" +
	"廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严武戴莫孔汤小老阿"
