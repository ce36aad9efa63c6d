package dingtalk

import (
	"sync"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/logger"
)

// quietLogger drops what the SDK logs: its wire log holds the client secret, the tickets and people's words, and its
// error lines come at every ordinary close. What an operator needs to know is logged by the supervision.
type quietLogger struct{}

func (quietLogger) Debugf(string, ...any)   {}
func (quietLogger) Infof(string, ...any)    {}
func (quietLogger) Warningf(string, ...any) {}
func (quietLogger) Errorf(string, ...any)   {}
func (quietLogger) Fatalf(string, ...any)   {}

// silenceSDK sets the SDK's process-wide logger once, before any connection: left unset, the SDK's first users race to
// set it.
var silenceSDK = sync.OnceFunc(func() { logger.SetLogger(quietLogger{}) })
