// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// KindFleet is the kind of the resource that the controller reconciles.
const KindFleet = "Fleet"

// Finalizer is on every Fleet that the controller has begun with. It makes the deletion of
// a Fleet wait until the requests in flight to its members have ended; nothing on any
// member is deleted.
const Finalizer = "finalizers.fairlead.dev/fleet"

// Fleet follows a branch of a git repository, and reconciles every cluster of the fleet in
// it. Deleting a Fleet deletes nothing on any cluster.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=fl,categories={all,fairlead}
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message"
// +kubebuilder:printcolumn:name="Clusters",type="string",JSONPath=".status.clusters.summary",priority=1
// +kubebuilder:printcolumn:name="Held",type="integer",JSONPath=".status.works.held",priority=1
// +kubebuilder:printcolumn:name="Revision",type="string",JSONPath=".status.lastAppliedRevision",priority=1
type Fleet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FleetSpec `json:"spec,omitempty"`
	// +kubebuilder:default={observedGeneration:-1}
	Status FleetStatus `json:"status,omitempty"`
}

// FleetList is a list of Fleets.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type FleetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Fleet `json:"items"`
}

// FleetSpec is what to follow, and how to reach the clusters.
//
// +kubebuilder:validation:XValidation:rule="has(self.git) != has(self.sourceRef)",message="specify exactly one of spec.git and spec.sourceRef"
type FleetSpec struct {
	// Interval is how often to fetch the repository. Default 1m; with a webhook, which makes
	// polling a fallback, 10m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// RetryInterval is how soon to fetch again after a failure. Default: the interval.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +optional
	RetryInterval *metav1.Duration `json:"retryInterval,omitempty"`
	// Timeout is how long one fetch and fold may take. Default: the interval, at least 1m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Suspend stops the reconciliation: nothing is sent to any cluster, drift is not
	// reverted, and the conditions stay as they are.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// Git is the repository of the fleet.
	// +optional
	Git *GitSource `json:"git,omitempty"`
	// SourceRef is a GitRepository of Flux's source-controller that has the address, the
	// branch, the credentials and the verification. Its artifact's revision triggers a look.
	// +optional
	SourceRef *SourceReference `json:"sourceRef,omitempty"`
	// Path is the directory of the fleet inside the repository.
	// +kubebuilder:default="./"
	// +optional
	Path string `json:"path,omitempty"`
	// Members is how to reach the clusters whose sync mode is Push.
	// +optional
	Members MembersSpec `json:"members,omitempty"`
	// Publish is the repository with a branch for each cluster whose sync mode is Pull.
	// +optional
	Publish *PublishSpec `json:"publish,omitempty"`
	// Decryption decrypts manifests on the way to a cluster.
	// +optional
	Decryption *DecryptionSpec `json:"decryption,omitempty"`
	// PullRequests has the controller plan every open pull request of the repository, and
	// report each commit's rollout to the forge.
	// +optional
	PullRequests *PullRequestsSpec `json:"pullRequests,omitempty"`
	// Webhook is where a forge reports a push, which is then looked at immediately.
	// +optional
	Webhook *WebhookSpec `json:"webhook,omitempty"`
	// Readiness is what the condition Ready tolerates.
	// +optional
	Readiness ReadinessSpec `json:"readiness,omitempty"`
	// Sharding is how replicas of a controller with --enable-sharding share the clusters.
	// +optional
	Sharding *ShardingSpec `json:"sharding,omitempty"`
}

// ShardingSpec is how replicas share the clusters. Without --enable-sharding it has no
// effect.
type ShardingSpec struct {
	// Shards is how many parts the clusters are divided into: at least four for each
	// replica. When it changes, nothing is sent to any cluster until every replica has given
	// up its former ones.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	// +kubebuilder:default=32
	// +optional
	Shards *int32 `json:"shards,omitempty"`
}

// DefaultShards is how many parts the clusters are divided into where a Fleet says nothing.
const DefaultShards = 32

// GitSource is a branch of a git repository.
type GitSource struct {
	// URL is an https://, ssh:// or http://localhost address.
	// +kubebuilder:validation:Pattern="^(https?|ssh)://.*$"
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// Branch to follow. Default: the remote's default branch.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Branch string `json:"branch,omitempty"`
	// SecretRef names a Secret with username and password, bearerToken, identity and
	// known_hosts, or a GitHub App; ca.crt, tls.crt and tls.key.
	// +optional
	SecretRef *fluxmeta.LocalObjectReference `json:"secretRef,omitempty"`
	// ProxySecretRef names a Secret with address, username and password of an HTTP proxy.
	// +optional
	ProxySecretRef *fluxmeta.LocalObjectReference `json:"proxySecretRef,omitempty"`
	// Verify is which commits must be signed.
	// +optional
	Verify *VerifySpec `json:"verify,omitempty"`
}

// VerifySpec is which commits must be signed, and by whom.
type VerifySpec struct {
	// Mode is HEAD (default): nothing is folded past a head that no known key has signed; or
	// EachCommit: nor past any first-parent commit that no known key has signed.
	// +kubebuilder:validation:Enum=HEAD;EachCommit
	// +kubebuilder:default=HEAD
	// +optional
	Mode VerifyMode `json:"mode,omitempty"`
	// SecretRef names a Secret with OpenPGP keys (*.asc) and SSH keys (*.sshpub).
	SecretRef fluxmeta.LocalObjectReference `json:"secretRef"`
}

// VerifyMode is which commits must be signed.
type VerifyMode string

// The modes of verification.
const (
	VerifyHead       VerifyMode = "HEAD"
	VerifyEachCommit VerifyMode = "EachCommit"
)

// SourceReference names a source of Flux.
type SourceReference struct {
	// Kind is GitRepository.
	// +kubebuilder:validation:Enum=GitRepository
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Namespace of the source. Default: the Fleet's.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// MembersSpec is how to reach clusters. Of a cluster that KubeConfig has no context for, the
// Secret that its Cluster document names is used, or else the Secret CLUSTER-kubeconfig.
type MembersSpec struct {
	// KubeConfig names a Secret with a kubeconfig that has a context for each cluster, named
	// like it.
	// +optional
	KubeConfig *KubeConfigSpec `json:"kubeConfig,omitempty"`
	// ServiceAccountName is impersonated on every cluster, in the Fleet's namespace there.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// KubeConfigSpec is where a kubeconfig is.
type KubeConfigSpec struct {
	// SecretRef names a Secret, and the key of the kubeconfig in it. Default of the key: value,
	// or else value.yaml.
	SecretRef fluxmeta.SecretKeyReference `json:"secretRef"`
}

// PublishSpec is where the manifests of pull clusters go.
type PublishSpec struct {
	// URL is an https:// or ssh:// address.
	// +kubebuilder:validation:Pattern="^(https?|ssh)://.*$"
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// SecretRef names a Secret with the keys of spec.git.secretRef.
	// +optional
	SecretRef *fluxmeta.LocalObjectReference `json:"secretRef,omitempty"`
	// Prefix precedes the cluster's name in the name of its branch.
	// +kubebuilder:default="fairlead/"
	// +optional
	Prefix string `json:"prefix,omitempty"`
}

// DecryptionSpec is how manifests are decrypted.
type DecryptionSpec struct {
	// Provider is sops.
	// +kubebuilder:validation:Enum=sops
	Provider string `json:"provider"`
	// SecretRef names a Secret with age (*.agekey) and OpenPGP (*.asc) private keys.
	SecretRef fluxmeta.LocalObjectReference `json:"secretRef"`
}

// PullRequestsSpec is which forge to report to.
type PullRequestsSpec struct {
	// Provider is github, gitlab or gitea (which Forgejo is, too).
	// +kubebuilder:validation:Enum=github;gitlab;gitea
	Provider string `json:"provider"`
	// URL of the forge. Default: that of the repository.
	// +kubebuilder:validation:Pattern="^https?://.*$"
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	URL string `json:"url,omitempty"`
	// Repository is OWNER/NAME. Default: the path of the repository's URL.
	// +optional
	Repository string `json:"repository,omitempty"`
	// SecretRef names a Secret with a token of the forge.
	SecretRef fluxmeta.LocalObjectReference `json:"secretRef"`
	// Forks plans pull requests from forks, too: whoever can open one can then have this
	// controller fetch and render what is in it.
	// +optional
	Forks bool `json:"forks,omitempty"`
}

// WebhookSpec is where a forge reports a push: POST /hook/ followed by the digest that
// status.webhookPath has.
type WebhookSpec struct {
	// Type is which forge it is, and so how a delivery is signed.
	// +kubebuilder:validation:Enum=github;gitlab;gitea;bitbucket;generic;generic-hmac
	Type string `json:"type"`
	// SecretRef names a Secret whose key token is shared with the forge.
	SecretRef fluxmeta.LocalObjectReference `json:"secretRef"`
}

// ReadinessSpec is what the condition Ready tolerates.
type ReadinessSpec struct {
	// MaxUnavailable is how many clusters may be unreachable while Ready stays True: a
	// number, or a percentage of all.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:default=0
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}
