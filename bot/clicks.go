package bot

import (
	"context"
	"errors"
	"slices"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/command"
	"ebb/bot/parts"
	"ebb/bot/wording"
	"ebb/sessions"
)

// clicks answers presses of buttons on cards. A press that a turn has to see becomes a message.
type clicks struct {
	shared   *parts.Shared
	cards    sessions.Cards
	intake   *intake
	handler  *command.Handler
	language string // for a card that is gone
	metrics  *metrics
}

// click accepts presses of people whom the card answers, and of administrators.
func (k *clicks) click(ctx context.Context, c chat.Click) chat.Clicked {
	answer, outcome := k.judgeClick(ctx, c)
	k.metrics.clicks.WithLabelValues(knownAction(c.Action), outcome).Inc()
	return answer
}

const (
	clickDone    = "done"
	clickRefused = "refused"
	clickFailed  = "error"
)

func (k *clicks) judgeClick(ctx context.Context, c chat.Click) (chat.Clicked, string) {
	lang := k.language
	say := func(p wording.Phrase) chat.Clicked { return chat.Clicked{Notice: wording.Say(p, lang)} }
	card, err := k.cards.ClickedCard(ctx, c.Card, c.By)
	if errors.Is(err, sessions.ErrNotFound) {
		return say(wording.ButtonGone), clickRefused
	}
	if err != nil {
		return k.clickFailed(ctx, err, say)
	}
	lang = k.shared.Languages.OfText(card.Message.ConversationID, card.Words)
	if newest := k.intake.organization.Load(); card.Message.Organization == "" && newest != nil { // an older release stored the session's messages
		card.Message.Organization = *newest
	}
	switch {
	case isForeign(c.Organization, card.Message.Organization): // the id may be that of a member or an administrator here
		return say(wording.ButtonNotYours), clickRefused
	case c.By == "" || !card.Asked && !slices.Contains(k.shared.Current.Get().Admins, c.By):
		return say(wording.ButtonNotYours), clickRefused
	case c.Action == sessions.ButtonGood || c.Action == sessions.ButtonBad:
		return k.rate(ctx, card, sessions.Rating(c.Action), say)
	case c.Action == sessions.ButtonStop && card.Running:
		return k.stopByClick(ctx, card, c.By, say)
	case c.Action == sessions.ButtonStop:
		answer := say(wording.ButtonLate)
		answer.Hide = true
		return answer, clickRefused
	case c.Action == sessions.ButtonApprove || c.Action == sessions.ButtonReject:
		return k.decideByClick(ctx, c, card, lang, say)
	}
	zerolog.Ctx(ctx).Warn().EmbedObject(card.Key).Str("button", string(c.Action)).Msg("Card has a button with an unknown id")
	return say(wording.ButtonUnknown), clickRefused
}

// isForeign compares the organization of a press with the robot's. Either is empty where it is unknown.
func isForeign(of, own string) bool { return of != "" && own != "" && of != own }

func (k *clicks) clickFailed(ctx context.Context, err error, say func(wording.Phrase) chat.Clicked) (chat.Clicked, string) {
	zerolog.Ctx(ctx).Warn().Err(err).Msg("Click failed")
	return say(wording.ButtonFailed), clickFailed
}

func (k *clicks) rate(ctx context.Context, card sessions.Clicked, r sessions.Rating, say func(wording.Phrase) chat.Clicked) (chat.Clicked, string) {
	if card.Running {
		return say(wording.ButtonEarly), clickRefused
	}
	first, err := k.cards.RateCard(ctx, card.Key, card.Track, r)
	switch {
	case err != nil:
		return k.clickFailed(ctx, err, say)
	case !first:
		return say(wording.ButtonRated), clickRefused
	}
	k.metrics.ratings.WithLabelValues(string(r)).Inc()
	zerolog.Ctx(ctx).Info().EmbedObject(card.Key).Int64("event", card.EventID).Str("rating", string(r)).Msg("Answer rated")
	return chat.Clicked{Hide: true, Notice: say(wording.ButtonThanks).Notice}, clickDone
}

// stopByClick stores the press as a message of the person, so that it reaches the replica that runs the turn. It
// is in the card's session: an administrator's own session may be another one. Its text is what people read in the log.
func (k *clicks) stopByClick(ctx context.Context, card sessions.Clicked, by sessions.UserID, say func(wording.Phrase) chat.Clicked) (chat.Clicked, string) {
	m := k.press(card, sessions.ButtonStop, by)
	m.ID = chat.StopID(card.EventID, by)
	m.Quiet = true // for replicas of a release without Press, which serve the session during an upgrade
	served, err := k.intake.placing.serves(ctx, m)
	if err != nil {
		return k.clickFailed(ctx, err, say)
	}
	may, ends := k.handler.MayStop(sessions.Event{SenderID: by, Message: &m}, card.Asked, card.Shared)
	if !served || !may {
		return say(wording.ButtonNotYours), clickRefused
	}
	m.Text = k.intake.views.Words.Quoted(m) + m.Text
	done, err := k.intake.placing.acceptAt(ctx, card.Key, m)
	if err := k.intake.finish(ctx, m, done, err); err != nil {
		return k.clickFailed(ctx, err, say)
	}
	if !ends { // the others may still press it
		return say(wording.ButtonOwn), clickDone
	}
	return chat.Clicked{Hide: true}, clickDone
}

// press makes the message of a press. The turn of the press judges whether the person is an administrator: the rights of now may be gone then.
func (k *clicks) press(card sessions.Clicked, button sessions.Button, by sessions.UserID) sessions.Message {
	m := card.Message
	m.SenderID, m.StaffID = by, by
	m.Press = &sessions.Press{Button: button, Turn: card.EventID}
	m.Text, m.SentAt = "/"+string(button), k.shared.Now()
	return m
}

// decideByClick stores a press that decides on calls of tools as a message of the person, in the card's session. Its turn decides.
func (k *clicks) decideByClick(
	ctx context.Context, c chat.Click, card sessions.Clicked, lang string, say func(wording.Phrase) chat.Clicked,
) (chat.Clicked, string) {
	m := k.press(card, c.Action, c.By)
	m.ID, m.SenderNick = chat.DecisionID(card.EventID, c.By, c.Action, m.SentAt), card.Nick
	served, err := k.intake.placing.serves(ctx, m)
	if err != nil {
		return k.clickFailed(ctx, err, say)
	}
	refusal, over, err := k.handler.RefuseDecision(ctx, card.Key, sessions.Event{SenderID: c.By, Content: m.Text, Message: &m}, lang)
	switch {
	case err != nil:
		return k.clickFailed(ctx, err, say)
	case !served:
		return say(wording.ButtonNotYours), clickRefused
	case refusal != "": // also to the person whose second press comes late
		return chat.Clicked{Hide: over, Notice: refusal}, clickRefused
	}
	done, err := k.intake.placing.acceptAt(ctx, card.Key, m)
	if err := k.intake.finish(ctx, m, done, err); err != nil {
		return k.clickFailed(ctx, err, say)
	}
	return chat.Clicked{Hide: true}, clickDone
}

func knownAction(a sessions.Button) string {
	switch a {
	case sessions.ButtonStop, sessions.ButtonGood, sessions.ButtonBad, sessions.ButtonApprove, sessions.ButtonReject:
		return string(a)
	}
	return "other"
}
