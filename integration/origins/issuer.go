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

// Issuer makes a certificate for each host name at the first request for it. With one certificate for several names, a
// browser may send the requests of all of them over one HTTP/2 connection (RFC 9113 section 9.1.1). Hosts share one only
// where the manifest says so.
type Issuer struct {
	site   *Site
	mu     sync.Mutex
	issued map[string]*tls.Certificate // by the names in it
}

// NewIssuer returns an issuer that signs with the site's CA.
func NewIssuer(site *Site) *Issuer {
	return &Issuer{site: site, issued: map[string]*tls.Certificate{}}
}

// Certificate serves as tls.Config.GetCertificate. A name that the site does not have gets none.
func (i *Issuer) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(hello.ServerName)
	host, served := i.site.Hosts[name]
	if !served {
		return nil, fmt.Errorf("no site %q here", name)
	}
	names := host.Certificate
	if len(names) == 0 {
		names = []string{name}
	}
	key := strings.Join(names, " ")
	i.mu.Lock()
	defer i.mu.Unlock()
	if certificate, ok := i.issued[key]; ok {
		return certificate, nil
	}
	certificate, err := i.issue(names)
	if err != nil {
		return nil, err
	}
	i.issued[key] = certificate
	return certificate, nil
}

func (i *Issuer) issue(names []string) (*tls.Certificate, error) {
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
		Subject:      pkix.Name{CommonName: names[0]},
		DNSNames:     names,
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
