// Package client sends messages.
package client

// Client keeps what it has sent.
type Client struct{ sent []string }

// Do keeps a message, and returns how many there are.
func (c *Client) Do(m string) int {
	c.sent = append(c.sent, m)
	return len(c.sent)
}
