package kernel

import (
	"bytes"
	"encoding/binary"
	"image"
	_ "image/gif" // the formats that models take
	_ "image/jpeg"
	_ "image/png"
)

// maxSide is the longest side of a picture that services take, in pixels.
const maxSide = 8000

// pictureType returns the type of a picture by its bytes, whatever somebody calls it. It reports
// false for one that services refuse: each request with it would fail, and so each further turn of
// its session.
func pictureType(data []byte) (mime string, ok bool) {
	format := "webp"
	w, h := webp(data)
	if c, name, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		format, w, h = name, c.Width, c.Height
	}
	return "image/" + format, w > 0 && h > 0 && w <= maxSide && h <= maxSide
}

// webp returns the size of a picture in that format (RFC 9649), 0 for other data.
func webp(d []byte) (w, h int) {
	if len(d) < 30 || string(d[:4]) != "RIFF" || string(d[8:12]) != "WEBP" {
		return 0, 0
	}
	switch string(d[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(d[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(d[28:]) & 0x3fff)
	case "VP8L":
		n := binary.LittleEndian.Uint32(d[21:])
		return int(n&0x3fff) + 1, int(n>>14&0x3fff) + 1
	case "VP8X":
		return int(uint32(d[24])|uint32(d[25])<<8|uint32(d[26])<<16) + 1, int(uint32(d[27])|uint32(d[28])<<8|uint32(d[29])<<16) + 1
	}
	return 0, 0
}
