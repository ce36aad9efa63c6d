package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"ebb/bot/manage"
	"ebb/bot/reload"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions/llm"
)

// modelCommand is /model.
type modelCommand struct {
	current *reload.Current
	views   *view.Builder
	manage  *manage.Manager
	roles   roles
}

func modelOf(e *env) modelCommand {
	return modelCommand{e.shared.Current, e.views, e.manage, e.roles()}
}

func (c modelCommand) list(_ context.Context, t *view.CommandTurn, _ Call) string {
	models := c.current.For(t.Lease.Key).Models
	if len(models) == 0 {
		return wording.Say(wording.NoModels, t.Lang)
	}
	inForce := cmp.Or(c.views.Choices.Model(t.View.Session), models[0].Name)
	var out strings.Builder
	for _, m := range models {
		mark := ""
		if m.Name == inForce {
			mark = wording.Say(wording.ModelMark, t.Lang)
		}
		fmt.Fprintf(&out, "- `%s`%s%s\n", m.Name, c.price(m, t.Lang), mark)
	}
	return wording.Say(wording.Models, t.Lang) + out.String()
}

func (c modelCommand) price(m llm.ModelChoice, lang string) string {
	if m.In == 0 && m.Out == 0 {
		return ""
	}
	in := func(amount float64) string { return wording.Price(amount, c.current.Get().Currency) }
	return wording.Say(wording.ModelPrice, lang, in(m.In), in(cmp.Or(m.Cached, m.In)), in(m.Out))
}

// choose sets the model of the conversation; the others stay behind it as fallbacks.
func (c modelCommand) choose(ctx context.Context, t *view.CommandTurn, call Call) string {
	name, models := call.Arg, c.current.For(t.Lease.Key).Models
	at := slices.IndexFunc(models, func(m llm.ModelChoice) bool { return strings.EqualFold(m.Name, name) })
	switch {
	case strings.EqualFold(name, "default") || name == "默认":
		name = "default"
	case at < 0:
		return wording.Say(wording.NoModel, t.Lang, name) + call.Command.usage(t.Lang) + "\n\n" + c.list(ctx, t, call)
	default:
		name = models[at].Name
	}
	settings, err := c.manage.ChooseModel(ctx, c.roles.actor(t), t.View.Session, name)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to store the model of a conversation")
		return wording.Say(wording.SetFailed, t.Lang)
	}
	t.View.Session.Settings = settings
	return wording.Say(wording.ModelSet, t.Lang, cmp.Or(c.views.Choices.Model(t.View.Session), models[0].Name))
}
