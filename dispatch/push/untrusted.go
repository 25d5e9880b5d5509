// SPDX-License-Identifier: Apache-2.0

package push

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Allow is what a kubeconfig may have that somebody else wrote. The zero value allows what
// needs no trust: an https address outside of here, an authority, and a token, a password
// or a client certificate, all of it inline.
type Allow struct {
	Exec     bool // exec and auth-provider, which run programs here
	TLS      bool // http, and no verification of the server's certificate
	Proxy    bool // proxy-url
	Internal bool // addresses that lead to this machine, its link, or Own
	// Own are the addresses of the controller's own API server: URLs, host:port, or hosts
	// and IPs for every port.
	Own []string
}

// maxKubeconfig limits the size of a kubeconfig; the API server has the same limit for a Secret.
const maxKubeconfig = 1 << 20

// ParseContexts reads a kubeconfig that somebody else wrote, with a context for each
// cluster. What allow does not permit is refused by For, for the cluster that it concerns.
// The name is what errors call it, such as "Secret acme/members"; none quotes its content.
func ParseContexts(kubeconfig []byte, name string, allow Allow) (*Contexts, error) {
	raw, err := parse(kubeconfig, name)
	if err != nil {
		return nil, err
	}
	return &Contexts{file: name, raw: *raw, allow: &allow}, nil
}

// ParseCluster reads a kubeconfig of a single cluster, such as one of Cluster API: its
// current context, or the only one.
func ParseCluster(kubeconfig []byte, name string, allow Allow) (*Config, error) {
	raw, err := parse(kubeconfig, name)
	if err != nil {
		return nil, err
	}

	at := raw.Contexts[raw.CurrentContext]
	if raw.CurrentContext == "" && len(raw.Contexts) == 1 {
		for _, only := range raw.Contexts {
			at = only
		}
	}
	if at == nil {
		return nil, fmt.Errorf("%s: its current-context is not one of its %d contexts", name, len(raw.Contexts))
	}

	cfg, err := allow.config(raw, at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return cfg, nil
}

// Token is how Karmada reaches a cluster: what its Cluster document says, and a Secret.
type Token struct {
	Address         string // spec.apiEndpoint
	InsecureSkipTLS bool   // spec.insecureSkipTLSVerification
	Proxy           string // spec.proxyURL
	Token           string
	CA              []byte // PEM
}

// ParseToken is the Config of a Token.
func ParseToken(t Token, name string, allow Allow) (*Config, error) {
	ca := t.CA
	if t.InsecureSkipTLS {
		ca = nil // as in Karmada, which keeps both in the document
	}
	cluster := &api.Cluster{Server: t.Address, CertificateAuthorityData: ca, InsecureSkipTLSVerify: t.InsecureSkipTLS, ProxyURL: t.Proxy}
	raw := &api.Config{
		Clusters:  map[string]*api.Cluster{"": cluster},
		AuthInfos: map[string]*api.AuthInfo{"": {Token: t.Token}},
	}

	cfg, err := allow.config(raw, &api.Context{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return cfg, nil
}

// Impersonate has every request of a member made as a service account of it.
func Impersonate(cfg *Config, namespace, serviceAccount string) error {
	if len(utilvalidation.IsDNS1123Label(namespace)) > 0 || len(validation.ValidateServiceAccountName(serviceAccount, false)) > 0 {
		return fmt.Errorf("service account %q in namespace %q: not a valid name", serviceAccount, namespace)
	}
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + serviceAccount}
	return nil
}

var lineOf = regexp.MustCompile(`\bline ([0-9]{1,7})\b`)

// parse reads YAML or JSON. Of what the parser says only the line is kept: it quotes
// values.
func parse(kubeconfig []byte, name string) (*api.Config, error) {
	if len(kubeconfig) > maxKubeconfig {
		return nil, fmt.Errorf("%s: larger than %d bytes", name, maxKubeconfig)
	}

	raw, err := clientcmd.Load(kubeconfig)
	if err != nil {
		at := ""
		if line := lineOf.FindString(err.Error()); line != "" {
			at = " (" + line + ")"
		}
		return nil, fmt.Errorf("%s: not a kubeconfig%s", name, at)
	}
	if len(raw.Contexts) == 0 {
		return nil, fmt.Errorf("%s: not a kubeconfig: it has no contexts", name)
	}

	return raw, nil
}

// config makes the Config of a context, from nothing but what is checked here.
func (a Allow) config(raw *api.Config, at *api.Context) (*Config, error) {
	cluster, user := raw.Clusters[at.Cluster], raw.AuthInfos[at.AuthInfo]
	switch {
	case cluster == nil:
		return nil, errors.New("the context's cluster is not among the clusters")
	case user == nil && at.AuthInfo != "":
		return nil, errors.New("the context's user is not among the users")
	case user == nil:
		user = &api.AuthInfo{}
	}

	cfg := &Config{QPS: -1, Dial: a.dial} // the worker of each member limits its requests
	for _, part := range []error{a.server(cfg, cluster), a.trust(cfg, cluster), a.proxy(cfg, cluster), a.user(cfg, user)} {
		if part != nil {
			return nil, part
		}
	}
	if strings.HasPrefix(cfg.Host, "http:") {
		// As with kubectl, nothing secret is sent where everybody can read it.
		return &Config{QPS: -1, Dial: a.dial, Host: cfg.Host, Proxy: cfg.Proxy}, nil
	}
	return cfg, nil
}

// server checks the address. No error quotes it in full, since a password may be in it.
func (a Allow) server(cfg *Config, cluster *api.Cluster) error {
	u, err := url.Parse(cluster.Server)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("server is not a URL such as https://api.example.com:6443")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("server must not have a user, a query or a fragment")
	case u.Scheme == "http" && !a.TLS:
		return errors.New("server is http, without TLS; --insecure-kubeconfig-tls allows it")
	}

	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	if err := a.checkHost(u.Hostname(), port); err != nil {
		return fmt.Errorf("server: %w", err)
	}

	cfg.Host = cluster.Server
	return nil
}

func (a Allow) trust(cfg *Config, cluster *api.Cluster) error {
	ca := cluster.CertificateAuthorityData
	switch {
	case cluster.CertificateAuthority != "":
		return inline("certificate-authority")
	case cluster.InsecureSkipTLSVerify && !a.TLS:
		return errors.New("insecure-skip-tls-verify is refused; --insecure-kubeconfig-tls allows it")
	case cluster.InsecureSkipTLSVerify && len(ca) > 0:
		return errors.New("specify only one of insecure-skip-tls-verify and certificate-authority-data")
	case len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca):
		return errors.New("certificate-authority-data has no PEM certificate")
	}

	cfg.CAData, cfg.Insecure, cfg.ServerName = ca, cluster.InsecureSkipTLSVerify, cluster.TLSServerName
	cfg.DisableCompression = cluster.DisableCompression
	return nil
}

// inline refuses a file, whose content is that of the controller's machine.
func inline(field string) error {
	return fmt.Errorf("%s is a file, which is never read; put its content into %s-data", field, field)
}

func (a Allow) proxy(cfg *Config, cluster *api.Cluster) error {
	if cluster.ProxyURL == "" {
		return nil
	}
	if !a.Proxy {
		return errors.New("proxy-url is refused; --insecure-kubeconfig-proxy allows it")
	}

	u, err := url.Parse(cluster.ProxyURL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
		return errors.New("proxy-url is not an http://, https:// or socks5:// address")
	}
	if err := a.checkHost(u.Hostname(), u.Port()); err != nil {
		return fmt.Errorf("proxy-url: %w", err)
	}

	cfg.Proxy = http.ProxyURL(u)
	return nil
}

func (a Allow) user(cfg *Config, user *api.AuthInfo) error {
	switch {
	case user.TokenFile != "":
		return errors.New("tokenFile is a file, which is never read; put its content into token")
	case user.ClientCertificate != "":
		return inline("client-certificate")
	case user.ClientKey != "":
		return inline("client-key")
	case user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0:
		return errors.New("as, as-uid, as-groups and as-user-extra are refused; whom to impersonate is spec.members.serviceAccountName of the Fleet")
	case (user.Exec != nil || user.AuthProvider != nil) && !a.Exec:
		return errors.New("exec and auth-provider run a program and are refused; --insecure-kubeconfig-exec allows them")
	case user.Token != "" && (user.Username != "" || user.Password != ""):
		return errors.New("specify only one of token and username")
	}

	if len(user.ClientCertificateData) > 0 || len(user.ClientKeyData) > 0 {
		if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
			return errors.New("client-certificate-data and client-key-data are not a certificate and its key in PEM")
		}
	}

	cfg.CertData, cfg.KeyData = user.ClientCertificateData, user.ClientKeyData
	cfg.BearerToken, cfg.Username, cfg.Password = strings.TrimRight(user.Token, "\r\n"), user.Username, user.Password
	cfg.AuthProvider = user.AuthProvider
	if user.Exec != nil {
		cfg.ExecProvider = user.Exec.DeepCopy()
		cfg.ExecProvider.InteractiveMode = api.NeverExecInteractiveMode
		cfg.ExecProvider.StdinUnavailable = true
	}
	return nil
}
