package card

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"ebb/bot/dingtalk/calls"
	"ebb/sessions"
)

// Trial tries a template with one card in a group, by the calls of a streamed answer. Its steps are called in order,
// each once, until one fails; then Close.
type Trial struct {
	API      API
	Governor *calls.Governor
	Group    sessions.ConversationID
	Template string
	Key      string
	Lang     string

	track    string
	reserved calls.Reservation
	left     []calls.API // reserved and not made
	open     bool        // delivered, and not ended
}

var trialCalls = []calls.API{calls.CardCreate, calls.CardStream, calls.CardStream, calls.CardUpdate}

// Reserve counts the calls of the trial.
func (t *Trial) Reserve(ctx context.Context) (string, error) {
	var err error
	if t.reserved, err = t.Governor.Reserve(ctx, calls.Card, trialCalls...); err != nil {
		return "", err
	}
	t.left, t.track = slices.Clone(trialCalls), "ebb-doctor-"+rand.Text()
	return fmt.Sprintf("this card takes %d of the month's calls", len(trialCalls)), nil
}

func (t *Trial) call(api calls.API) calls.Reservation {
	if at := slices.Index(t.left, api); at >= 0 {
		t.left = slices.Delete(t.left, at, at+1)
	}
	return t.reserved
}

// Deliver creates the card and delivers it to the group.
func (t *Trial) Deliver(ctx context.Context) (string, error) {
	variables := map[string]string{t.Key: status(t.Lang, ""), varStop: yes, varFeedback: no}
	_, err := t.API.CreateCard(ctx, sessions.Target{ConversationID: t.Group, ConversationType: sessions.Group}, New{
		Track: t.track, Template: t.Template, Variables: variables, Reserved: t.call(calls.CardCreate),
	})
	t.open = err == nil || mayHaveArrived(err)
	if err != nil {
		return "", t.advise(err)
	}
	return "DingTalk delivered one card to " + string(t.Group), nil
}

// Frame streams an unfinished text.
func (t *Trial) Frame(ctx context.Context) (string, error) {
	if err := t.stream(ctx, trialText(t.Lang, false), Streaming); err != nil {
		return "", err
	}
	return fmt.Sprintf("the variable %q took a text", t.Key), nil
}

// End streams the final text.
func (t *Trial) End(ctx context.Context) (string, error) {
	if err := t.stream(ctx, trialText(t.Lang, true), Finished); err != nil {
		return "", err
	}
	t.open = false
	return "the card is finished", nil
}

func (t *Trial) stream(ctx context.Context, text string, state State) error {
	err := t.API.StreamCard(ctx, Update{
		Track: t.track, Key: t.Key, Text: text, ID: frameID(t.track, text), State: state, Reserved: t.call(calls.CardStream),
	})
	return t.advise(err)
}

// SetVariables sets the other variables as at the end of an answer.
func (t *Trial) SetVariables(ctx context.Context) (string, error) {
	err := t.API.SetCard(ctx, Variables{
		Track: t.track, Values: map[string]string{varStop: no, varFeedback: yes, varFlow: flowDone}, Reserved: t.call(calls.CardUpdate),
	})
	if err != nil {
		return "", t.advise(err)
	}
	return fmt.Sprintf("%s, %s and %s are set. DingTalk does not report variables that a template lacks: "+
		"check in the group that the card has its text, no stop button, and both buttons of a rating", varStop, varFeedback, varFlow), nil
}

const closeTime = 5 * time.Second

// Close ends a card that a failed step left open, returns calls that were not made, and describes the month.
func (t *Trial) Close(ctx context.Context) (string, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer stop()
	var failed error
	if t.open {
		failed = t.API.SetCard(ctx, Variables{Track: t.track, Values: map[string]string{varStop: no, varFlow: flowFailed}, Reserved: t.call(calls.CardUpdate)})
	}
	for _, api := range t.left {
		failed = errors.Join(failed, t.reserved.Return(ctx, api))
	}
	made := fmt.Sprintf("%d were made", len(trialCalls)-len(t.left))
	if left, bounded := t.Governor.Status().Left(); bounded {
		made += fmt.Sprintf(", %d remain in the month", left)
	}
	if failed != nil {
		return "", fmt.Errorf("%s, and the card may stay unfinished: %w", made, failed)
	}
	return made, nil
}

func (t *Trial) advise(err error) error {
	for _, known := range []struct {
		err    error
		advice string
	}{
		{ErrTemplate, fmt.Sprintf("no published template of this application has the id %q: publish the template, connect it with the application, or correct dingtalk.card_template_id", t.Template)},
		{ErrVariable, fmt.Sprintf("the template has no variable %q for streamed Markdown: correct dingtalk.card_content_key, or add the variable and publish the template", t.Key)},
		{ErrPermission, "grant the application the permissions Card.Instance.Write and Card.Streaming.Write"},
		{ErrUndelivered, fmt.Sprintf("check the group's id %q, which bot sessions list shows, and add the robot to the group", t.Group)},
	} {
		if errors.Is(err, known.err) {
			return fmt.Errorf("%s (%w)", known.advice, err)
		}
	}
	return err
}
