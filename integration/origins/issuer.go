package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"time"
)

// Issuer makes a certificate for each host name at the first request for it. With one certificate for all names, a
// browser could send the requests of several sites over one HTTP/2 connection (RFC 9113 section 9.1.1). Real sites do
// not offer that.
type Issuer struct {
	site   *Site
	mu     sync.Mutex
	issued map[string]*tls.Certificate
}

// NewIssuer returns an issuer that signs with the site's CA.
func NewIssuer(site *Site) *Issuer {
	return &Issuer{site: site, issued: map[string]*tls.Certificate{}}
}

// Certificate serves as tls.Config.GetCertificate. A name that the site does not have gets none.
func (i *Issuer) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(hello.ServerName)
	if _, served := i.site.Hosts[name]; !served {
		return nil, fmt.Errorf("no site %q here", name)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if certificate, ok := i.issued[name]; ok {
		return certificate, nil
	}
	certificate, err := i.issue(name)
	if err != nil {
		return nil, err
	}
	i.issued[name] = certificate
	return certificate, nil
}

func (i *Issuer) issue(name string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(30 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signer, ok := i.site.ca.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the CA's key cannot sign")
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.site.ca.Leaf, &key.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, i.site.ca.Certificate[0]}, PrivateKey: key}, nil
}
