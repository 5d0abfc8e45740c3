package main

import (
	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway"
)

func registerListen(l *daemon.Listen, c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&l.Addr, "listen", gateway.DefaultListen, "`address` to listen on; other machines need TLS\n(default with --acme :443, with --tls-self-signed :8443)")
	f.StringVar(&l.Local, "local", "", "additional `address` for this machine only, without TLS; off for none\n(default with --acme and --tls-self-signed: "+gateway.DefaultListen+")")
	f.StringVar(&l.Cert, "tls-cert", "", "`file` with a certificate and its chain (PEM); reloaded when it changes")
	f.StringVar(&l.Key, "tls-key", "", "`file` with the private key of the certificate (PEM)")
	f.BoolVar(&l.SelfSigned, "tls-self-signed", false, "generate a key and a certificate: for a home network, where devices compare the fingerprint")
	f.BoolVar(&l.ACME, "acme", false, "get and renew certificates for each --host, and agree to the terms of the authority")
	f.StringVar(&l.Email, "acme-email", "", "email `address` at which the authority can reach you")
	f.StringVar(&l.Directory, "acme-directory", "", "`URL` of the authority, such as one of your own\n(default: Let's Encrypt)")
	f.StringVar(&l.Plain, "acme-http", "", "`address` that answers the authority's HTTP challenges and redirects browsers to https; off for none\n(default: port 80, if it is free)")
	f.StringVar(&l.Proxies, "behind-proxy", "", "a proxy serves TLS, and connects from the networks in `[=networks]`, such as --behind-proxy=10.0.0.0/8\n(without them: from this machine)")
	f.Lookup("behind-proxy").NoOptDefVal = "127.0.0.0/8,::1/128"
	f.StringArrayVar(&l.Hosts, "host", nil, "`name` at which clients reach yaya, as in https://NAME (repeatable)")
	l.Set = f.Changed
}
