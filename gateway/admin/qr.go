package admin

import (
	"net/http"
	"net/url"

	"github.com/skip2/go-qrcode"

	"github.com/yaya-ai/yaya/gateway/api"
)

func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return api.Fail(http.StatusBadRequest, "%q is not a plain http or https URL", s)
	}
	return nil
}

// qr returns the QR code that leads a device's browser to the page with a code.
func qr(link string) ([]string, error) {
	q, err := qrcode.New(link, qrcode.Medium)
	if err != nil {
		return nil, err
	}
	var rows []string
	for _, line := range q.Bitmap() {
		row := make([]byte, len(line))
		for i, black := range line {
			row[i] = '0'
			if black {
				row[i] = '1'
			}
		}
		rows = append(rows, string(row))
	}
	return rows, nil
}
