package classify

import (
	"ebb/memory/text"
)

// AnswerStyle reports whether a text states how its speaker wants to be answered: in which language, length or form. It
// is a preference of that speaker, never a rule for others. In a private chat it follows the person; in a group it
// concerns that person alone.
func AnswerStyle(body string) bool { return styleRE.MatchString(text.Canonical(body)) }

const languages = `(?:english|chinese|mandarin|cantonese|french|german|japanese|korean|spanish|italian|russian|portuguese|arabic|thai|vietnamese|dutch)`

var styleRE = compilePhrases(`
(?:^|[^的条封份户件邮])(?:回答|回复|答复|回话|答话|回应)(?:我|我们|大家|问题|消息)?(?:时|的时候)?(?:都|请|要|必须|只能|尽量|也|就|得|一律|统一|最好|应该|希望)*(?:用|使用|以|说|讲|简短|简洁|简明|详细|精简|短一?点|附上?|带上?|不要用?|别|少用?|先给|不超过|控制在|分点|列)
(?:用|以|使用|说|讲)(?:简体|繁体)?(?:中文|英文|英语|汉语|法语|法文|日语|日文|德语|韩语|粤语|双语)(?:来)?(?:回答|回复|答复|回话|跟我说|和我说|和我交流|跟我交流)(?:我|$|[^\p{Han}])
(?:喜欢|希望|想要|偏好|习惯)(?:机器人|助手|你|ebb)?(?:的|用)?(?:简短|简洁|详细|中文|英文|英语|表格|列表|分点)(?:的|来)?(?:回答|回复|答复)
\b(?:answer|reply|respond|answers|replies|responses)(?: (?:to )?(?:me|us|him|her|my questions?))?(?: (?:are|be|should be|must be|always|only|please))* (?:in (?:` + languages + `|bullet|short|brief|plain|simple|one|two|three|at most)|briefly|concisely|with (?:short|fewer|bullet|examples?|tables?|code)|using (?:bullet|table|markdown))
\b(?:prefers?|wants?|likes?|would like|asks? for) (?:\w{1,10} )?(?:short|brief|concise|long|detailed|` + languages + `)(?: and \w{1,10})? (?:answers|replies|responses)\b
\b(?:prefers?|wants?|likes?) to be (?:answered|addressed)\b
`)
