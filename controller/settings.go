// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller/webhook"
	"github.com/fairlead/fairlead/credentials"
	"github.com/fairlead/fairlead/object"
	"github.com/fairlead/fairlead/reconcile"
	"github.com/fairlead/fairlead/review"
	"github.com/fairlead/fairlead/source"
)

// settings are what a Fleet, and the Secrets and the GitRepository that it names, say of
// its loop. With another place the loop is opened anew; the rest changes under it.
type settings struct {
	place
	auth source.Auth

	verify      reconcile.Verify
	hook        webhook.Hook // without a token there is none
	publishAuth source.Auth
	interval    time.Duration // between two looks
	retry       time.Duration // after one that failed
	timeout     time.Duration // of a fetch and a fold

	reviews     review.Settings // where pull requests are, if the place is reviewed
	notReviewed error           // why they cannot be reached

	shards int // that the clusters are divided into, where replicas share them

	artifact string // the revision of the GitRepository's artifact
}

// place is what makes it another loop.
type place struct {
	repo, branch, path string
	publish, prefix    string
	kubeConfig         v1alpha1.KubeConfigSpec
	serviceAccount     string
	decryption         string // the Secret with its keys
	reviewed           bool   // on a forge, see review
}

const (
	defaultInterval = time.Minute
	// pushedInterval is the default where a push is reported, and polling a fallback.
	pushedInterval = 10 * time.Minute
)

// resolve reads what a Fleet names.
func (r *reconciler) resolve(ctx context.Context, f *v1alpha1.Fleet, own *secrets) (settings, error) {
	var s settings
	git, err := r.source(ctx, f, &s)
	if err != nil {
		return s, err
	}
	if err := source.CheckURL(git.URL); err != nil {
		return s, &StalledError{ReasonInvalidURL, fmt.Errorf("the repository's %w", err)}
	}

	gitSecrets := own
	if from, ok := sourceOf(f); ok && from.Namespace != f.Namespace {
		gitSecrets = newSecrets(r.reader, from.Namespace)
	}
	if s.auth, err = readAuth(ctx, gitSecrets, git); err != nil {
		return s, err
	}

	s.repo, s.branch = git.URL, git.Branch
	s.path = strings.TrimPrefix(path.Clean("/"+f.Spec.Path), "/")
	s.path = cmp.Or(s.path, ".")
	s.serviceAccount = cmp.Or(f.Spec.Members.ServiceAccountName, r.opt.DefaultServiceAccount)
	if k := f.Spec.Members.KubeConfig; k != nil {
		s.kubeConfig = *k
	}
	if d := f.Spec.Decryption; d != nil {
		s.decryption = d.SecretRef.Name
	}
	if err := s.readPublish(ctx, f, own); err != nil {
		return s, err
	}
	if err := s.readVerify(ctx, gitSecrets, git.Verify, f.Status.LastAppliedRevision); err != nil {
		return s, err
	}
	if err := s.readHook(ctx, f, own); err != nil {
		return s, err
	}
	s.times(f)
	s.shards = shardsOf(f)

	return s, s.readReviews(ctx, f, own)
}

// source returns the repository of a Fleet.
func (r *reconciler) source(ctx context.Context, f *v1alpha1.Fleet, s *settings) (*v1alpha1.GitSource, error) {
	from, ok := sourceOf(f)
	switch {
	case ok == (f.Spec.Git != nil):
		return nil, &StalledError{ReasonInvalidSpec, errors.New("specify exactly one of spec.git and spec.sourceRef")}
	case !ok:
		return f.Spec.Git, nil
	case from.Namespace != f.Namespace && r.opt.ACL.NoCrossNamespaceRefs:
		return nil, &StalledError{ReasonAccessDenied, fmt.Errorf("spec.sourceRef names GitRepository %s in another namespace, which this controller forbids (--no-cross-namespace-refs)", from)}
	}

	git, artifact, err := readSource(ctx, r.client, from)
	s.artifact = artifact
	if !errors.Is(err, errNoFlux) {
		r.watchSources()
	}
	return git, err
}

// readAuth reads the credentials of a repository.
func readAuth(ctx context.Context, from *secrets, git *v1alpha1.GitSource) (source.Auth, error) {
	var auth source.Auth
	if ref := git.SecretRef; ref != nil {
		data, err := from.read(ctx, ref.Name)
		if err != nil {
			return auth, err
		}
		if auth, err = credentials.Git(data, from.title(ref.Name)); err != nil {
			return auth, &SecretError{err}
		}
	}

	if ref := git.ProxySecretRef; ref != nil {
		data, err := from.read(ctx, ref.Name)
		if err != nil {
			return auth, err
		}
		if auth.Proxy, err = credentials.Proxy(data, from.title(ref.Name)); err != nil {
			return auth, &SecretError{err}
		}
	}

	return auth, nil
}

// readPublish reads where the manifests of pull clusters go.
func (s *settings) readPublish(ctx context.Context, f *v1alpha1.Fleet, own *secrets) error {
	to := f.Spec.Publish
	if to == nil {
		return nil
	}
	if err := source.CheckURL(to.URL); err != nil {
		return &StalledError{ReasonInvalidURL, fmt.Errorf("spec.publish: %w", err)}
	}

	s.publish, s.prefix = to.URL, cmp.Or(to.Prefix, "fairlead/")
	var err error
	s.publishAuth, err = readAuth(ctx, own, &v1alpha1.GitSource{SecretRef: to.SecretRef})
	return err
}

// readVerify reads whose signatures are asked for.
func (s *settings) readVerify(ctx context.Context, from *secrets, v *v1alpha1.VerifySpec, applied string) error {
	if v == nil {
		return nil
	}

	data, err := from.read(ctx, v.SecretRef.Name)
	if err != nil {
		return err
	}
	// What was applied was verified once: a state that is lost brings no cluster back.
	_, s.verify.Accepted, _ = strings.Cut(applied, "@sha1:")
	s.verify.Mode = reconcile.VerifyMode(cmp.Or(v.Mode, v1alpha1.VerifyHead))
	if s.verify.Signers, err = credentials.Signers(data, from.title(v.SecretRef.Name)); err != nil {
		return &SecretError{err}
	}
	return nil
}

// readHook reads the token that is shared with the forge.
func (s *settings) readHook(ctx context.Context, f *v1alpha1.Fleet, own *secrets) error {
	w := f.Spec.Webhook
	if w == nil {
		return nil
	}

	data, err := own.read(ctx, w.SecretRef.Name)
	if err != nil {
		return err
	}
	token, err := credentials.Token(data, own.title(w.SecretRef.Name))
	if err != nil {
		return &SecretError{err}
	}
	s.hook = webhook.Hook{Type: webhook.Type(w.Type), Token: token, Namespace: f.Namespace, Name: f.Name}
	return nil
}

// times sets how often to look.
func (s *settings) times(f *v1alpha1.Fleet) {
	s.interval = defaultInterval
	if f.Spec.Webhook != nil || f.Spec.SourceRef != nil {
		s.interval = pushedInterval
	}
	if f.Spec.Interval != nil {
		s.interval = f.Spec.Interval.Duration
	}

	s.retry = min(s.interval, defaultInterval)
	if f.Spec.RetryInterval != nil {
		s.retry = f.Spec.RetryInterval.Duration
	}

	s.timeout = max(s.interval, defaultInterval)
	if f.Spec.Timeout != nil {
		s.timeout = f.Spec.Timeout.Duration
	}
}

// digest names a place, for its directory.
func (p place) digest() string {
	sum := object.DigestOf([]byte(strings.Join([]string{source.Redact(p.repo), p.branch, p.path}, "\x00"))).String()
	return strings.TrimPrefix(sum, "sha256:")[:16]
}

// directory is where the state of a Fleet is kept: one for each, and for what it follows.
func directory(storage string, name types.NamespacedName) string {
	return path.Join(storage, name.Namespace, name.Name)
}
