package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"ebb/bot/llm"
	"ebb/bot/view"
	"ebb/bot/wording"
)

type choosing struct {
	*Handler
	*view.Exchange
}

func (c choosing) models() []llm.Listed { return c.cfg.Current.For(c.Key).Models }

func (c choosing) list() string {
	models := c.models()
	if len(models) == 0 {
		return wording.Say(wording.NoModels, c.Lang)
	}
	inForce := cmp.Or(c.views.Model(c.View.Session), models[0].Name)
	var out strings.Builder
	for _, m := range models {
		mark := ""
		if m.Name == inForce {
			mark = wording.Say(wording.ModelMark, c.Lang)
		}
		fmt.Fprintf(&out, "- `%s`%s%s\n", m.Name, c.price(m), mark)
	}
	return wording.Say(wording.Models, c.Lang) + out.String()
}

func (c choosing) price(m llm.Listed) string {
	if m.In == 0 && m.Out == 0 {
		return ""
	}
	in := func(amount float64) string { return wording.Price(amount, c.cfg.Current.Get().Currency) }
	return wording.Say(wording.ModelPrice, c.Lang, in(m.In), in(cmp.Or(m.Cached, m.In)), in(m.Out))
}

// choose sets the model of the conversation; the others stay behind it as fallbacks.
func (c choosing) choose(ctx context.Context, call Call) string {
	name := call.Arg
	models := c.models()
	at := slices.IndexFunc(models, func(m llm.Listed) bool { return strings.EqualFold(m.Name, name) })
	switch {
	case strings.EqualFold(name, "default") || name == "默认":
		name = "default"
	case at < 0:
		return wording.Say(wording.NoModel, c.Lang, name) + call.Command.usage(c.Lang) + "\n\n" + c.list()
	default:
		name = models[at].Name
	}
	settings, err := c.manage.ChooseModel(ctx, c.actor(c.Exchange), c.View.Session, name)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to store the model of a conversation")
		return wording.Say(wording.SetFailed, c.Lang)
	}
	c.View.Session.Settings = settings
	return wording.Say(wording.ModelSet, c.Lang, cmp.Or(c.views.Model(c.View.Session), models[0].Name))
}
