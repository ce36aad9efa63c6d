package bot

import (
	"context"
	"errors"
	"strings"

	"ebb/sessions"
)

// errNoSummary says that a model answered, if at all, with nothing that passes for a summary.
var errNoSummary = errors.New("no usable summary")

// reason is why an attempt at a compaction failed, in one word. It stands first in the log's error column, so that
// people read later what it means to them.
type reason string

// The reasons. The others are the classes of a model's errors.
const (
	reasonModel     reason = "model error" // the class follows
	reasonTimeout   reason = "out of time"
	reasonChanged   reason = "conversation changed"
	reasonNoSummary reason = "no usable summary"
	reasonNoGain    reason = "no gain"
	reasonNothing   reason = "nothing to compact"
	reasonStop      reason = "stopped"
	reasonStorage   reason = "storage"
)

// reasonOf is the reason that an error comes to.
func reasonOf(err error) reason {
	if _, ok := errors.AsType[*ModelError](err); ok {
		return reason(ClassOf(err))
	}
	switch {
	case errors.Is(err, ErrStop), errors.Is(err, context.Canceled):
		return reasonStop
	case errors.Is(err, context.DeadlineExceeded):
		return reasonTimeout
	case errors.Is(err, sessions.ErrConflict), errors.Is(err, sessions.ErrLeaseLost):
		return reasonChanged
	case errors.Is(err, errNoSummary):
		return reasonNoSummary
	case errors.Is(err, errNoGain):
		return reasonNoGain
	case nothingToCompact(err):
		return reasonNothing
	}
	return reasonStorage
}

// reasonIn is the reason that an error column begins with; empty where an older release wrote it.
func reasonIn(text string) reason {
	word, rest, _ := strings.Cut(text, ": ")
	if reason(word) == reasonModel {
		word, _, _ = strings.Cut(rest, ": ")
	}
	if _, known := reason(word).words(); known {
		return reason(word)
	}
	return ""
}

// word is the reason in a few words for people, in a language. Like an apology it has nothing of the provider's own text.
func (r reason) word(lang string) string {
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
func (r reason) words() (words [2]string, known bool) {
	if words, known = modelReasons[ErrorClass(r)]; known {
		return words, true
	}
	words, known = reasonWords[r]
	return words, known
}

// compactReason is why a compaction failed, for the administrator who asked for it.
func compactReason(err error, lang string) string { return reasonOf(err).word(lang) }

// modelReasons are what a model's refusal comes to, in Chinese and English.
var modelReasons = map[ErrorClass][2]string{
	Busy:        {"模型服务繁忙", "the model service is busy"},
	Timeout:     {"模型服务没有及时回答", "the model service did not answer in time"},
	Broken:      {"模型服务的回答中断或无法读取", "the model service's answer broke off or could not be read"},
	Unreachable: {"连不上模型服务", "the model service can't be reached"},
	Missing:     {"模型服务的地址或模型名不存在", "the model service's address or the model does not exist"},
	Denied:      {"模型服务拒绝访问，请检查密钥和额度", "the model service denies access: check key and quota"},
	Overflow:    {"内容超出模型窗口", "it is longer than the model's window"},
	Refused:     {"模型服务拒绝了其中的内容", "the model service refuses what it says"},
	Malformed:   {"模型服务不接受这个请求", "the model service does not take the request"},
}

// reasonWords are the other reasons in Chinese and English.
var reasonWords = map[reason][2]string{
	reasonTimeout:   {"超时", "it took too long"},
	reasonChanged:   {"对话同时被改动", "the conversation changed meanwhile"},
	reasonNoSummary: {"模型没有给出可用的摘要", "the model gave no usable summary"},
	reasonNoGain:    {"压缩后不会明显变小", "it would not become much smaller"},
	reasonNothing:   {"没有可以压缩的旧消息", "there is nothing old enough to compact"},
	reasonStop:      {"程序正在重启", "the bot was being restarted"},
	reasonStorage:   {"存储出错，已记录", "storage trouble, which has been recorded"},
}

// errNoGain says that a compaction would gain too little.
var errNoGain = errors.New("gains too little")
