package chat

import (
	"context"
	"fmt"
	"os"

	"ebb/sessions"
)

// Files is a [Transport] that gives out the files of messages.
type Files interface {
	// Download writes a file that a message to the robot has, at most limit bytes. The error is a [*FileError].
	Download(ctx context.Context, robot sessions.RobotCode, a sessions.Attachment, to *os.File, limit int64) error
}

// Uploader is a [Transport] that sends files. Send delivers a reply with a file that has a Media.
type Uploader interface {
	// Upload gives the bytes of a file to the platform, for a robot, and returns the id by which a message shows them. A repeated upload has
	// no effect on people. The error is a [*SendError].
	Upload(ctx context.Context, robot sessions.RobotCode, f sessions.File) (media string, err error)
}

// FileError is a file that can't be had.
type FileError struct {
	Fault sessions.MediaFault
	Err   error
}

// Error names the reason and the cause.
func (e *FileError) Error() string { return fmt.Sprintf("file %s: %v", e.Fault, e.Err) }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }
