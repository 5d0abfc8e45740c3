package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"

	"github.com/yaya-ai/yaya/internal/secretfile"
	"github.com/yaya-ai/yaya/internal/userfile"
)

// maxIdentities bounds a file of identities, in bytes.
const maxIdentities = 1 << 20

// Recipients returns the recipients of age that the texts name: each is one (age1…), or the
// path of a file with some.
func Recipients(texts []string) (out []age.Recipient, err error) {
	for _, text := range texts {
		lines := text
		if !strings.HasPrefix(text, "age1") {
			data, found, err := userfile.Read(text)
			if err == nil && !found {
				err = fmt.Errorf("%q is neither a recipient of age (age1…) nor a file of them", text)
			}
			if err != nil {
				return nil, err
			}
			lines = string(data)
		}
		found, err := age.ParseRecipients(strings.NewReader(lines))
		if err != nil {
			return nil, fmt.Errorf("recipient %q: %w", text, err)
		}
		out = append(out, found...)
	}
	return out, nil
}

// Identities reads the files of the identities that open a backup; each may be a pipe.
func Identities(ctx context.Context, files []string) (out []age.Identity, err error) {
	for _, file := range files {
		data, err := secretfile.Read(ctx, file, maxIdentities)
		if err != nil {
			return nil, err
		}
		found, err := age.ParseIdentities(strings.NewReader(string(data)))
		if err != nil {
			// The parser's error may quote the line, and with it the key.
			return nil, errors.New(file + " is not a file of age identities, whose lines begin with AGE-SECRET-KEY- (age-keygen -o FILE makes one)")
		}
		out = append(out, found...)
	}
	return out, nil
}
