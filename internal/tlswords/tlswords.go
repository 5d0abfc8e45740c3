// Package tlswords explains in plain words why a TLS connection failed, with a remedy.
package tlswords

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
)

// explained is an error in other words.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }

// Explain returns err with TLS errors of crypto/tls, crypto/x509 or net/http in words
// for a person, and a remedy. It wraps err. It returns other errors, and nil, unchanged.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	if _, is := errors.AsType[*explained](err); is {
		return err
	}
	part, meaning := look(err)
	if meaning == "" {
		return err
	}
	return &explained{strings.Replace(err.Error(), part, meaning, 1), err}
}

// plainAnswer is the text of net/http's error for a server that answers without TLS;
// net/http has no error value for it.
const plainAnswer = "http: server gave HTTP response to HTTPS client"

const noTLS = "the server does not speak TLS at this port: use http:// if it is on this machine, or the port at which it serves https"

// look returns the part of an error's text about TLS, and its meaning; "" if there is
// none.
func look(err error) (part, meaning string) {
	if e, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return e.Error(), noTLS
	}
	if strings.Contains(err.Error(), plainAnswer) {
		return plainAnswer, noTLS
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return e.Error(), certificate(e.Err)
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "remote error" { // an alert, which has no type of its own
		return e.Error(), "the server refuses TLS with this machine: " + strings.TrimPrefix(e.Err.Error(), "tls: ")
	}
	return "", ""
}

func certificate(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "nobody that this machine trusts has signed the server's certificate: add its authority to those that the system trusts (on Linux, SSL_CERT_FILE can name a file of them), and start yaya again"
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the server's certificate is for another name (" + plain(e) + "): use a name that it is for"
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return "the server's certificate is not valid now (" + plain(e) + "): have it renewed there, or correct the clock of this machine"
	}
	return "the server's certificate cannot be verified (" + plain(err) + "): have it replaced there"
}

// plain is an error of crypto/x509 without the name of the package.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "x509: ") }
