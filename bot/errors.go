package bot

import (
	"context"
	"errors"

	"ebb/sessions"
)

// ErrStop is the cause with which work is cancelled when the process stops: it is no failure of the work.
var ErrStop = errors.New("bot is stopping")

// apology is what people are told of an error that ended their turn. It depends on the error's class alone: the
// provider's own text may hold keys and addresses.
func apology(err error, lang string) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return say(sayTimeout, lang)
	}
	switch ClassOf(err) {
	case Timeout:
		return say(sayTimeout, lang)
	case Broken:
		return say(sayBroken, lang)
	case Unreachable:
		return say(sayUnreachable, lang)
	case Denied, Missing:
		return say(sayDenied, lang)
	case Refused:
		return say(sayRefused, lang)
	case Malformed:
		return say(sayMalformed, lang)
	case Overflow:
		return say(sayOverflow, lang)
	}
	return say(sayBusy, lang)
}

// errNoSummary says that a model answered, if at all, with nothing that passes for a summary.
var errNoSummary = errors.New("no usable summary")

// compactReason is why a compaction failed, in a few words for the administrator who asked for it. Like an apology it has
// nothing of the provider's own text.
func compactReason(err error, lang string) string {
	i := 0
	if lang == "en" {
		i = 1
	}
	trouble, model := errors.AsType[*ModelError](err)
	switch {
	case model:
		if words, known := modelReasons[trouble.Class]; known {
			return words[i]
		}
	case errors.Is(err, context.DeadlineExceeded):
		return [2]string{"超时", "it took too long"}[i]
	case errors.Is(err, sessions.ErrConflict), errors.Is(err, sessions.ErrLeaseLost):
		return [2]string{"对话同时被改动", "the conversation changed meanwhile"}[i]
	case errors.Is(err, errNoSummary):
		return [2]string{"模型没有给出可用的摘要", "the model gave no usable summary"}[i]
	}
	return [2]string{"存储出错，已记录", "storage trouble, which has been recorded"}[i]
}

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
