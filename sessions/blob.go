package sessions

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// blobBytes is short for models, and still without collisions.
const blobBytes = 16

// BlobOf is the address of a body, a hash of its content.
func BlobOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:blobBytes])
}

const blobDir = "offloaded/"

// BlobPath is the path of a body in a view.
func BlobPath(blob string) string { return blobDir + blob + ".txt" }

// GetTool is the tool that reads paths.
const GetTool = "memory_get"

// BlobCall is the call that reads a body.
func BlobCall(blob string) string { return fmt.Sprintf(`%s {"path":"%s"}`, GetTool, BlobPath(blob)) }

// BlobAt is the address in a path. The session may lack such a body.
func BlobAt(path string) (blob string, ok bool) {
	blob, ok = strings.CutSuffix(path, ".txt")
	if blob, is := strings.CutPrefix(blob, blobDir); ok && is && len(blob) == 2*blobBytes {
		_, err := hex.DecodeString(blob)
		return blob, err == nil
	}
	return "", false
}

// Unavailable replaces a body that is no longer readable.
func Unavailable(blob string) string { return "[Content unavailable: " + BlobPath(blob) + "]" }

const fileDir = "files/"

// FilePath is the path of a document that a message has.
func FilePath(event int64, place int) string {
	return fmt.Sprintf("%s%d-%d.txt", fileDir, event, place)
}

// FileAt is the message of a path, and the place in the list of its attachments.
func FileAt(path string) (event int64, place int, ok bool) {
	n, err := fmt.Sscanf(path, fileDir+"%d-%d.txt", &event, &place)
	return event, place, err == nil && n == 2 && path == FilePath(event, place)
}

// KeptFile is a file that the people of a session keep. Its pages are those of the document with its id.
type KeptFile struct {
	Key      Key
	ID       int64
	Name     string // bounded, in one line
	Version  int    // from 1
	Kind     MediaKind
	Media    string // see [Media.ID]
	Bytes    int64
	Pages    int
	SentBy   UserID // empty: not known
	KeptBy   UserID // empty: erased
	Keeper   string // nick; empty: not known
	Event    int64  // the message of its sender that brought it; 0: another person's quote brought it
	KeptAt   time.Time
	KeptFrom int64 // the message that asked for it
}

// Bounds of the kept files of a session.
const (
	MaxFiles     = 100
	MaxFilePages = 5000
	MaxFileName  = 120 // characters
)

// Errors of a file that is not kept.
var (
	ErrManyFiles  = errors.New("the session keeps as many files as it may")
	ErrManyPages  = errors.New("the session keeps as many pages as it may")
	ErrOthersFile = errors.New("another person's file has the name")
)

// FileRights are a person's rights to delete and replace the kept files of a session.
type FileRights struct {
	IDs []UserID // the person's; an empty one is of no file
	All bool     // those of all people
}

// Allow reports whether the person may delete and replace a file: its sender and its keeper may.
func (r FileRights) Allow(f KeptFile) bool {
	return r.All || slices.ContainsFunc(r.IDs, func(id UserID) bool { return id != "" && (id == f.SentBy || id == f.KeptBy) })
}

// Keeping is the result of keeping a file.
type Keeping struct {
	KeptFile
	Known    bool // the session kept this content before: KeptFile is that one
	Replaced bool // an older version is gone
}

// KeptPath is the path of a page of a kept file.
func KeptPath(id int64, page int) string { return fmt.Sprintf("%s%d.txt#%d", fileDir, id, page) }

// KeptAt is the kept file of a path, and the page; 0 if the path names none.
func KeptAt(path string) (id int64, page int, ok bool) {
	if n, err := fmt.Sscanf(path, fileDir+"%d.txt#%d", &id, &page); err == nil && n == 2 {
		return id, page, path == KeptPath(id, page)
	}
	n, err := fmt.Sscanf(path, fileDir+"%d.txt", &id)
	return id, 0, err == nil && n == 1 && path == fmt.Sprintf("%s%d.txt", fileDir, id)
}
