package sql

import "time"

func init() { stopWait = 4 * time.Second }
