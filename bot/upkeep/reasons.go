package upkeep

import (
	"context"
	"errors"
	"strings"

	"ebb/bot/llm"
	"ebb/sessions"
)

// errNoSummary says that a model answered, if at all, with nothing that passes for a summary.
var errNoSummary = errors.New("no usable summary")

// Reason is why an attempt at a compaction failed, in one word. It stands first in the log's error column, so that
// people read later what it means to them.
type Reason string

// The reasons. The others are the classes of a model's errors.
const (
	reasonModel     Reason = "model error" // the class follows
	ReasonTimeout   Reason = "out of time"
	reasonChanged   Reason = "conversation changed"
	ReasonNoSummary Reason = "no usable summary"
	reasonNoGain    Reason = "no gain"
	reasonNothing   Reason = "nothing to compact"
	reasonStop      Reason = "stopped"
	reasonStorage   Reason = "storage"
)

// reasonOf is the reason that an error comes to.
func reasonOf(err error) Reason {
	if _, ok := errors.AsType[*llm.CallError](err); ok {
		return Reason(llm.ClassOf(err))
	}
	switch {
	case errors.Is(err, llm.ErrStop), errors.Is(err, context.Canceled):
		return reasonStop
	case errors.Is(err, context.DeadlineExceeded):
		return ReasonTimeout
	case errors.Is(err, sessions.ErrConflict), errors.Is(err, sessions.ErrLeaseLost):
		return reasonChanged
	case errors.Is(err, errNoSummary):
		return ReasonNoSummary
	case errors.Is(err, errNoGain):
		return reasonNoGain
	case NothingToCompact(err):
		return reasonNothing
	}
	return reasonStorage
}

// ReasonIn is the reason that an error column begins with; empty where an older release wrote it.
func ReasonIn(text string) Reason {
	word, rest, _ := strings.Cut(text, ": ")
	if Reason(word) == reasonModel {
		word, _, _ = strings.Cut(rest, ": ")
	}
	if _, known := Reason(word).words(); known {
		return Reason(word)
	}
	return ""
}

// Word is the reason in a few words for people, in a language. Like an apology it has nothing of the provider's own text.
func (r Reason) Word(lang string) string {
	words, known := r.words()
	if !known {
		words = [2]string{"原因已记录", "the reason is recorded"}
	}
	if lang == "en" {
		return words[1]
	}
	return words[0]
}

// words are the reason in Chinese and English.
func (r Reason) words() (words [2]string, known bool) {
	if words, known = modelReasons[llm.ErrorClass(r)]; known {
		return words, true
	}
	words, known = reasonWords[r]
	return words, known
}

// CompactReason is why a compaction failed, for the administrator who asked for it.
func CompactReason(err error, lang string) string { return reasonOf(err).Word(lang) }

// modelReasons are what a model's refusal comes to, in Chinese and English.
var modelReasons = map[llm.ErrorClass][2]string{
	llm.Busy:        {"模型服务繁忙", "the model service is busy"},
	llm.Timeout:     {"模型服务没有及时回答", "the model service did not answer in time"},
	llm.Broken:      {"模型服务的回答中断或无法读取", "the model service's answer broke off or could not be read"},
	llm.Unreachable: {"连不上模型服务", "the model service can't be reached"},
	llm.Missing:     {"模型服务的地址或模型名不存在", "the model service's address or the model does not exist"},
	llm.Denied:      {"模型服务拒绝访问，请检查密钥和额度", "the model service denies access: check key and quota"},
	llm.Overflow:    {"内容超出模型窗口", "it is longer than the model's window"},
	llm.Refused:     {"模型服务拒绝了其中的内容", "the model service refuses what it says"},
	llm.Malformed:   {"模型服务不接受这个请求", "the model service does not take the request"},
}

// reasonWords are the other reasons in Chinese and English.
var reasonWords = map[Reason][2]string{
	ReasonTimeout:   {"超时", "it took too long"},
	reasonChanged:   {"对话同时被改动", "the conversation changed meanwhile"},
	ReasonNoSummary: {"模型没有给出可用的摘要", "the model gave no usable summary"},
	reasonNoGain:    {"压缩后不会明显变小", "it would not become much smaller"},
	reasonNothing:   {"没有可以压缩的旧消息", "there is nothing old enough to compact"},
	reasonStop:      {"程序正在重启", "the bot was being restarted"},
	reasonStorage:   {"存储出错，已记录", "storage trouble, which has been recorded"},
}

// errNoGain says that a compaction would gain too little.
var errNoGain = errors.New("gains too little")
