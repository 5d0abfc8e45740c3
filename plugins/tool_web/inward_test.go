package tool_web_test

import (
	"net/http"
	"strings"
	"testing"
)

// A server cannot send the agent to a private address that the list has, by its form or by what a name
// leads to; the agent may read it when it names it.
func TestRedirectsDoNotLeadInward(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	w.names["inside.example"], w.names["localhost"] = "10.0.0.2", "127.0.0.2"
	for _, to := range []string{"http://127.0.0.2:1/", "http://localhost:1/", "http://x.localhost:1/", "http://10.0.0.2:1/", "http://inside.example:1/", "http://10.0.0.9/", "http://[::1]:1/"} {
		w.asked = nil
		res := w.fetch(w.at("listed.example", "/?to="+to))
		if want := "it redirects to " + to + ", which is not of the public internet: if that is meant, read this address directly"; res.OK || !strings.Contains(res.Text(), want) {
			t.Errorf("%s: %v %q, want %q", to, res.OK, res.Text(), want)
		}
		if strings.Contains(res.Text(), "can allow it") {
			t.Errorf("%s: %q, want no way to allow it", to, res.Text())
		}
	}
	for _, at := range []string{"http://127.0.0.2:1/", "http://localhost:1/"} {
		if res := w.fetch(at); !strings.Contains(res.Text(), "nothing listens there") {
			t.Errorf("%s, read directly: %q, want that it was dialed", at, res.Text())
		}
	}
}

// A refusal does not tell how to allow link-local addresses and those of the credentials of clouds.
func TestRefusalsOfferNoCredentials(t *testing.T) {
	w := newWorld(t, serve("", "x"))
	w.names["meta.example"] = "169.254.169.254"
	for _, host := range []string{"169.254.169.254", "169.254.1.1", "100.100.100.200", "[fd00:ec2::254]", "[fe80::1]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "meta.example"} {
		res := w.fetch("http://" + host + "/latest")
		if res.OK || strings.Contains(res.Text(), "can allow it") || strings.Contains(res.Text(), "allow the address") {
			t.Errorf("%s: %v %q, want a refusal that does not say how to allow it", host, res.OK, res.Text())
		}
	}
	if res := w.fetch("http://10.0.0.1/"); !strings.Contains(res.Text(), "its user can allow it: allow 10.0.0.1") {
		t.Errorf("another private address: %q, want how to allow it", res.Text())
	}
}
