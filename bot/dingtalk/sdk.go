package dingtalk

import (
	"sync"

	"github.com/open-dingtalk/dingtalk-stream-sdk-go/logger"
)

// quietLogger drops the SDK's log: it contains the client secret, tickets and messages, and errors at ordinary closes.
// The supervision logs relevant events.
type quietLogger struct{}

func (quietLogger) Debugf(string, ...any)   {}
func (quietLogger) Infof(string, ...any)    {}
func (quietLogger) Warningf(string, ...any) {}
func (quietLogger) Errorf(string, ...any)   {}
func (quietLogger) Fatalf(string, ...any)   {}

// silenceSDK sets the SDK's process-wide logger once, before any connection: otherwise its first users race to set it.
var silenceSDK = sync.OnceFunc(func() { logger.SetLogger(quietLogger{}) })
