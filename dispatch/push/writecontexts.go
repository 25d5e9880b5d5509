// SPDX-License-Identifier: Apache-2.0

package push

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Config is how to reach a member.
type Config = rest.Config

// WriteContexts writes a kubeconfig with a context for each cluster, named
// like it: what LoadContexts and kubectl read.
func WriteContexts(file string, clusters map[string]*Config) error {
	out := clientcmdapi.NewConfig()
	for name, c := range clusters {
		out.Clusters[name] = &clientcmdapi.Cluster{
			Server:                   c.Host,
			CertificateAuthority:     c.CAFile,
			CertificateAuthorityData: c.CAData,
			InsecureSkipTLSVerify:    c.Insecure,
		}
		out.AuthInfos[name] = &clientcmdapi.AuthInfo{
			ClientCertificate: c.CertFile, ClientCertificateData: c.CertData,
			ClientKey: c.KeyFile, ClientKeyData: c.KeyData,
			Token: c.BearerToken, TokenFile: c.BearerTokenFile,
			Username: c.Username, Password: c.Password,
		}
		out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	return clientcmd.WriteToFile(*out, file)
}
