package sessions

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
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
