package sendfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // read by image.DecodeConfig
	_ "image/jpeg" // read by image.DecodeConfig
	_ "image/png"  // read by image.DecodeConfig
	"net/http"
	"path"
	"regexp"
	"strings"
	"unicode"

	_ "golang.org/x/image/bmp" // read by image.DecodeConfig

	"ebb/sessions"
)

// The reasons why a file is not sent, for the model.
var (
	ErrEmpty    = errors.New("it is empty")
	ErrTooLarge = fmt.Errorf("it is over %d MB", sessions.MaxFile>>20)
	ErrType     = errors.New("its bytes are of no type that DingTalk accepts (pictures as PNG, JPEG, GIF or BMP; PDF, DOC, DOCX, XLS, XLSX, PPT, PPTX, ZIP, RAR)")
	ErrPicture  = errors.New("the picture is broken, or has too many pixels")
)

// maxPixels bounds a picture, which devices of people decode.
const maxPixels = 100 << 20

// judge returns a file with a safe name. The extension becomes that of the bytes, and stays among types that have equal bytes.
func judge(name string, body []byte) (sessions.File, error) {
	switch {
	case len(body) == 0:
		return sessions.File{}, ErrEmpty
	case len(body) > sessions.MaxFile:
		return sessions.File{}, ErrTooLarge
	}
	if kind := pictures[http.DetectContentType(body)]; kind != "" {
		size, _, err := image.DecodeConfig(bytes.NewReader(body))
		if err != nil || size.Width <= 0 || size.Height <= 0 || size.Width > maxPixels/size.Height {
			return sessions.File{}, ErrPicture
		}
		return sessions.File{Name: safeName(name, kind), Kind: sessions.FileImage, Body: body}, nil
	}
	kind := documentOf(strings.ToLower(strings.TrimPrefix(path.Ext(name), ".")), body)
	if kind == "" {
		return sessions.File{}, ErrType
	}
	return sessions.File{Name: safeName(name, kind), Kind: sessions.FilePlain, Body: body}, nil
}

var pictures = map[string]string{"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/bmp": "bmp"}

// documentOf is the extension of a document, or "". said is that of its name, which decides among old Office formats alone.
func documentOf(said string, body []byte) string {
	switch {
	case bytes.HasPrefix(body, []byte("%PDF-")):
		return "pdf"
	case bytes.HasPrefix(body, []byte("Rar!\x1a\x07")):
		return "rar"
	case bytes.HasPrefix(body, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")) && (said == "doc" || said == "xls" || said == "ppt"):
		return said
	case bytes.HasPrefix(body, []byte("PK\x03\x04")):
		return archiveOf(body)
	}
	return ""
}

// archiveOf distinguishes the Office formats by their parts.
func archiveOf(body []byte) string {
	z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return ""
	}
	for _, f := range z.File {
		switch f.Name {
		case "word/document.xml":
			return "docx"
		case "xl/workbook.xml":
			return "xlsx"
		case "ppt/presentation.xml":
			return "pptx"
		}
	}
	return "zip"
}

// maxName bounds a name, in characters.
const maxName = 60

// ending is an extension of a name: the last words of "报告 v1.2" or "2026.11月报" are none.
var ending = regexp.MustCompile(`(?i)\.(?:[a-z][a-z0-9]{1,4}|7z)$`)

// device is a name that Windows takes for a device, whatever its extension.
var device = regexp.MustCompile(`(?i)^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)`)

// safeName is a name without a path, control characters or marks that change the order of writing, with an extension.
func safeName(name, extension string) string {
	name = path.Base(strings.ReplaceAll(strings.ToValidUTF8(name, ""), `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune(`/:*?"<>|[]()#`+"`", r) {
			return -1
		}
		return r
	}, name)
	name = ending.ReplaceAllString(name, "")
	name = strings.Trim(strings.Join(strings.Fields(name), " "), ". ")
	if runes := []rune(name); len(runes) > maxName {
		name = strings.TrimSpace(string(runes[:maxName]))
	}
	switch {
	case name == "":
		name = "file"
	case device.MatchString(name):
		name = "file-" + name
	}
	return name + "." + extension
}
