package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/parts"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sessions/llm"
	"ebb/sessions/retry"
)

const (
	// refusesAll is the number of requests in a row after which a model counts as one that refuses each of them as invalid.
	refusesAll = 5
	// refusesContents is likewise for requests refused for their contents. People may write several of these.
	refusesContents = 20
	// alarmTime bounds the storage of a notice. The next refusal after alarmRest stores one that failed.
	alarmTime = 30 * time.Second
	alarmRest = time.Minute
)

// alarm writes to the administrators when a model needs them: it refuses the key, money is missing, its address or name is
// wrong, or it accepts no request. A notice is a message of a private session of the administrator, answered by its text like a
// reminder. So it survives the process, and its id makes it one for all replicas.
type alarm struct {
	robot    func() sessions.RobotCode // nil: no notice can be sent
	name     string
	now      func() time.Time
	location *time.Location
	language func(sessions.ConversationID, string) string
	admins   func() []sessions.UserID
	accept   func(context.Context, sessions.Key, sessions.Message) (sessions.Accepted, error)
	accepted func(sessions.Accepted)

	mu     sync.Mutex
	models map[string]*ailing
	work   sync.WaitGroup
}

type ailing struct {
	refused map[llm.ErrorClass]int // requests in a row
	down    llm.ErrorClass         // empty: it answers
	day     string
	again   bool                 // it answered after a notice of the day: one more may follow
	stored  map[string]bool      // notices
	tried   map[string]time.Time // times of attempts to store notices
}

var alarmPhrases = map[llm.ErrorClass]wording.Phrase{
	llm.Denied: wording.ModelDenied, llm.Unpaid: wording.ModelUnpaid, llm.Missing: wording.ModelMissing, llm.Malformed: wording.ModelMalformed,
}

// The endpoint of embeddings needs administrators, too. Its model may have the name of another one.
const vectorsOf = "embeddings/"

var vectorPhrases = map[llm.ErrorClass]wording.Phrase{
	llm.Denied: wording.VectorsRefused, llm.Unpaid: wording.VectorsRefused, llm.Missing: wording.VectorsRefused,
}

func newAlarm(robot func() sessions.RobotCode, name string, s *parts.Shared, in *intake) *alarm {
	return &alarm{
		robot: robot, name: name, now: s.Now, location: s.Location, language: s.Languages.OfText,
		admins: func() []sessions.UserID { return s.Current.Get().Admins }, accept: in.placing.acceptAt, accepted: in.wakeFor,
		models: map[string]*ailing{},
	}
}

// watch looks at the outcome of a call.
func (a *alarm) watch(ctx context.Context, r llm.Request, parts []llm.Part) {
	for _, p := range parts {
		a.observe(ctx, p.Model, p.Err, r.Greets, alarmPhrases)
	}
}

// watchVectors looks at the outcome of requests for vectors. Endpoints refuse single texts and numbers of them, too.
func (a *alarm) watchVectors(ctx context.Context, parts []llm.Part) {
	for _, p := range parts {
		if p.Err == nil || p.Err.Class != llm.Malformed && p.Err.Class != llm.Refused {
			a.observe(ctx, vectorsOf+p.Model, p.Err, false, vectorPhrases)
		}
	}
}

// observe notes that a model answered, or failed with err. A model that refuses a greeting accepts no request.
func (a *alarm) observe(ctx context.Context, model string, err *llm.CallError, greeted bool, phrases map[llm.ErrorClass]wording.Phrase) {
	class, notice := a.note(model, err, greeted, a.now().In(a.location))
	if notice == "" {
		return
	}
	log := zerolog.Ctx(ctx).With().Str("model", model).Str("class", string(class)).Logger()
	life := log.WithContext(context.WithoutCancel(ctx))
	text := func(lang string) string {
		return wording.Say(phrases[class], lang, strings.TrimPrefix(model, vectorsOf))
	}
	a.work.Go(func() {
		guard.Run(life, guard.Notice, func() { a.raise(life, model, notice, text) })
	})
}

// note returns the id of a notice that is due; empty for none.
func (a *alarm) note(model string, err *llm.CallError, greeted bool, now time.Time) (class llm.ErrorClass, notice string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.models[model]
	if m == nil {
		m = &ailing{refused: map[llm.ErrorClass]int{}}
		a.models[model] = m
	}
	if err == nil {
		m.again = m.again || m.down != ""
		m.refused, m.down = map[llm.ErrorClass]int{}, ""
		return "", ""
	}
	class = err.Class
	switch {
	case greeted && err.RequestFault():
		class = llm.Malformed
	case class == llm.Denied || class == llm.Unpaid || class == llm.Missing:
	case class == llm.Malformed || class == llm.Refused:
		if m.refused[class]++; m.refused[llm.Malformed] < refusesAll && m.refused[llm.Refused] < refusesContents {
			return "", ""
		}
		class = llm.Malformed
	default:
		return "", ""
	}
	if day := now.Format(time.DateOnly); m.day != day {
		m.day, m.again, m.stored, m.tried = day, false, map[string]bool{}, map[string]time.Time{}
	}
	m.down = class
	n := 1
	if m.again {
		n = 2
	}
	notice = fmt.Sprintf("alarm:%s:%s:%s:%d", model, class, m.day, n)
	if m.stored[notice] || now.Sub(m.tried[notice]) < alarmRest {
		return "", ""
	}
	m.tried[notice] = now
	return class, notice
}

func (a *alarm) raise(ctx context.Context, model, notice string, text func(lang string) string) {
	log := zerolog.Ctx(ctx)
	log.Error().Msg("Model needs an administrator")
	ctx, stop := context.WithTimeout(ctx, alarmTime)
	defer stop()
	lost := false
	for _, admin := range a.admins() {
		err := retry.Do(ctx, retry.Storage, func() error {
			if a.robot == nil {
				return nil
			}
			return a.write(ctx, admin, notice, text)
		})
		if err != nil {
			log.Warn().Err(err).Msg("Notice to an administrator not stored")
			lost = true
		}
	}
	if lost {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.models[model].stored[notice] = true
}

// Wait returns when all notices are stored or given up.
func (a *alarm) Wait(ctx context.Context) error { return awaitWork(ctx, &a.work) }

// write stores a message of the bot to a person who need not have written before. A second one with the id is none.
func (a *alarm) write(ctx context.Context, person sessions.UserID, id string, text func(lang string) string) error {
	conversation := sessions.ConversationID("notices:" + person)
	lang := a.language(conversation, "")
	m := sessions.Message{
		RobotCode: a.robot(), ConversationID: conversation, ConversationType: sessions.Private, ConversationTitle: a.name,
		ID: sessions.MessageID(id + ":" + string(person)), SenderID: person, StaffID: person, Kind: "text",
		Scheduled: &sessions.Scheduled{Kind: sessions.Remind, DueAt: a.now().In(a.location), Lang: lang},
	}
	m.Text = m.Scheduled.Lead() + text(lang)
	done, err := a.accept(ctx, sessions.ScopeGroup.Key(m), m)
	if errors.Is(err, sessions.ErrRefused) {
		return retry.Permanent(err)
	}
	if err == nil {
		a.accepted(done)
	}
	return err
}
