package gateway

import (
	"cmp"
	"context"
	"errors"

	"ebb/bot/config"
	"ebb/bot/dingtalk"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/card"
	"ebb/sessions"
	"ebb/sql"
)

// OpenTrial connects a trial of a bot's card template in a group. url is the direct address of the database,
// which counts the calls. stop is never nil.
func OpenTrial(ctx context.Context, cfg *config.Config, d config.DingTalkConfig, url, group string) (trial *card.Trial, stop func(), err error) {
	if d.CardTemplateID == "" {
		return nil, func() {}, errors.New("dingtalk.card_template_id is empty: make a template as deploy/dingtalk-card/README.md says, and set its id")
	}
	if err := OldSchema(ctx, url); err != nil {
		return nil, func() {}, DatabaseFault(err)
	}
	store, err := sql.Open(ctx, sql.Options{URL: url, MaxConns: 2})
	if err != nil {
		return nil, func() {}, DatabaseFault(err)
	}
	governor := calls.New(calls.Options{Store: store.Calls.ForRobot(sessions.RobotCode(d.ClientID)), Quota: int64(d.APICallsPerMonth)})
	t, err := dingtalk.New(dingtalk.Config{
		ClientID: d.ClientID, ClientSecret: d.ClientSecret.Reveal(), APIBase: d.APIBase, OAPIBase: d.OAPIBase, Calls: governor,
	})
	if err != nil {
		return nil, store.Close, err
	}
	return &card.Trial{
		API: t.CardAPI(), Governor: governor, Group: sessions.ConversationID(group), Template: d.CardTemplateID, Key: d.CardContentKey,
		Lang: cmp.Or(cfg.Groups[group].Language, cfg.Agent.Language),
	}, store.Close, nil
}
