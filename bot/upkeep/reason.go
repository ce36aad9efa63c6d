package upkeep

import (
	"context"
	"errors"
	"strings"

	"ebb/compaction"
	"ebb/sessions"
	"ebb/sessions/llm"
)

var errNoSummary = errors.New(string(reasonNoSummary))

// Reason is why a compaction failed: the first words of the log's error column.
type Reason string

// The reasons. The classes of a model's errors are reasons too.
const (
	reasonModel     Reason = "model error" // the class follows
	reasonTimeout   Reason = "out of time"
	reasonChanged   Reason = "conversation changed"
	reasonNoSummary Reason = "no usable summary"
	reasonNoGain    Reason = "no gain"
	reasonNothing   Reason = "nothing to compact"
	reasonStop      Reason = "stopped"
	reasonStorage   Reason = "storage"
	reasonDied      Reason = "process died"
)

func reasonOf(err error) Reason {
	if _, ok := errors.AsType[*llm.CallError](err); ok {
		return Reason(llm.ClassOf(err))
	}
	switch {
	case errors.Is(err, llm.ErrStop), errors.Is(err, context.Canceled):
		return reasonStop
	case errors.Is(err, context.DeadlineExceeded):
		return reasonTimeout
	case errors.Is(err, sessions.ErrConflict), errors.Is(err, sessions.ErrLeaseLost):
		return reasonChanged
	case errors.Is(err, errNoSummary):
		return reasonNoSummary
	case errors.Is(err, errNoGain):
		return reasonNoGain
	case NothingToCompact(err):
		return reasonNothing
	}
	return reasonStorage
}

// ParseReason returns "" if an older release wrote the column.
func ParseReason(text string) Reason {
	word, rest, _ := strings.Cut(text, ": ")
	if Reason(word) == reasonModel {
		word, _, _ = strings.Cut(rest, ": ")
	}
	if _, known := Reason(word).words(); known {
		return Reason(word)
	}
	return ""
}

// Describe returns the reason for people, in English for lang "en", else in Chinese. A provider's own text is left out.
func (r Reason) Describe(lang string) string {
	words, known := r.words()
	if !known {
		words = [2]string{"原因已记录", "the reason is recorded"}
	}
	if lang == "en" {
		return words[1]
	}
	return words[0]
}

func (r Reason) words() (words [2]string, known bool) {
	if words, known = modelReasons[llm.ErrorClass(r)]; known {
		return words, true
	}
	words, known = reasonWords[r]
	return words, known
}

// CompactReason describes why a compaction failed.
func CompactReason(err error, lang string) string { return reasonOf(err).Describe(lang) }

var modelReasons = map[llm.ErrorClass][2]string{
	llm.Busy:        {"模型服务繁忙", "the model service is busy"},
	llm.Timeout:     {"模型服务没有及时回答", "the model service did not answer in time"},
	llm.Broken:      {"模型服务的回答中断或无法读取", "the model service's answer broke off or could not be read"},
	llm.Unreachable: {"连不上模型服务", "the model service can't be reached"},
	llm.Missing:     {"模型服务的地址或模型名不存在", "the model service's address or the model does not exist"},
	llm.Denied:      {"模型服务拒绝访问，请管理员检查密钥和权限", "the model service denies access: an administrator has to check key and permissions"},
	llm.Unpaid:      {"模型服务的账户没有余额或额度，请管理员处理", "the account at the model service has no money or quota left: an administrator has to act"},
	llm.Overflow:    {"内容超出模型窗口", "it is longer than the model's window"},
	llm.Refused:     {"模型服务拒绝了其中的内容", "the model service refuses what it says"},
	llm.Malformed:   {"模型服务不接受这个请求", "the model service does not take the request"},
}

var reasonWords = map[Reason][2]string{
	reasonTimeout:   {"超时", "it took too long"},
	reasonChanged:   {"对话同时被改动", "the conversation changed meanwhile"},
	reasonNoSummary: {"模型没有给出可用的摘要", "the model gave no usable summary"},
	reasonNoGain:    {"压缩后不会明显变小", "it would not become much smaller"},
	reasonNothing:   {"没有可以压缩的旧消息", "there is nothing old enough to compact"},
	reasonStop:      {"程序正在重启", "the bot was being restarted"},
	reasonStorage:   {"存储出错，已记录", "storage trouble, which has been recorded"},
	reasonDied:      {"执行它的进程每次都中途退出", "its process died each time"},
}

var errNoGain = errors.New(string(reasonNoGain))

// NothingToCompact reports whether no compaction could shrink the view.
func NothingToCompact(err error) bool {
	return errors.Is(err, compaction.ErrAllRecent) || errors.Is(err, compaction.ErrSystemDominates)
}

// compactionFailureReason puts the [Reason] first, and once; a provider's own text is left out.
func compactionFailureReason(err error) string {
	why := reasonOf(err)
	if _, ok := errors.AsType[*llm.CallError](err); ok {
		return string(reasonModel) + ": " + string(why)
	}
	return string(why) + ": " + strings.TrimPrefix(err.Error(), string(why)+": ")
}
