// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
)

// gitRepositories is the kind of Flux's source-controller. Its API may be absent.
var gitRepositories = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}

// gitRepository is what a Fleet uses of a GitRepository.
type gitRepository struct {
	Spec struct {
		URL            string                     `json:"url"`
		SecretRef      *meta.LocalObjectReference `json:"secretRef,omitempty"`
		ProxySecretRef *meta.LocalObjectReference `json:"proxySecretRef,omitempty"`
		Provider       string                     `json:"provider,omitempty"`
		Suspend        bool                       `json:"suspend,omitempty"`
		Ref            *struct {
			Branch string `json:"branch,omitempty"`
			Tag    string `json:"tag,omitempty"`
			SemVer string `json:"semver,omitempty"`
			Name   string `json:"name,omitempty"`
			Commit string `json:"commit,omitempty"`
		} `json:"ref,omitempty"`
		Verify *struct {
			Mode      string                    `json:"mode,omitempty"`
			SecretRef meta.LocalObjectReference `json:"secretRef"`
		} `json:"verify,omitempty"`
	} `json:"spec"`
	Status struct {
		Artifact *struct {
			Revision string `json:"revision"`
		} `json:"artifact,omitempty"`
	} `json:"status"`
}

// newGitRepository returns an object to read a GitRepository into.
func newGitRepository() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gitRepositories)
	return u
}

// errNoFlux says that there are no GitRepositories.
var errNoFlux = errors.New("spec.sourceRef: this cluster has no GitRepository: install Flux's source-controller, or use spec.git")

// StalledError is why a Fleet cannot be reconciled before it, or what it names, changes.
type StalledError struct {
	Reason string // InvalidSpec, InvalidURL or AccessDenied
	Err    error
}

func (e *StalledError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StalledError) Unwrap() error { return e.Err }

// sourceOf returns the name of the GitRepository of a Fleet, if it has one.
func sourceOf(f *v1alpha1.Fleet) (types.NamespacedName, bool) {
	if f.Spec.SourceRef == nil {
		return types.NamespacedName{}, false
	}

	name := types.NamespacedName{Namespace: f.Spec.SourceRef.Namespace, Name: f.Spec.SourceRef.Name}
	if name.Namespace == "" {
		name.Namespace = f.Namespace
	}
	return name, true
}

// readSource returns what a GitRepository says, as spec.git would, and the revision of
// its artifact.
func readSource(ctx context.Context, c client.Reader, name types.NamespacedName) (*v1alpha1.GitSource, string, error) {
	u := newGitRepository()
	switch err := c.Get(ctx, name, u); {
	case apimeta.IsNoMatchError(err):
		return nil, "", errNoFlux
	case apierrors.IsNotFound(err):
		return nil, "", fmt.Errorf("GitRepository %s: not found", name)
	case err != nil:
		return nil, "", fmt.Errorf("GitRepository %s: %w", name, err)
	}

	var repo gitRepository
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &repo); err != nil {
		return nil, "", fmt.Errorf("GitRepository %s: %w", name, err)
	}
	git, err := repo.source()
	if err != nil {
		return nil, "", &StalledError{ReasonInvalidSpec, fmt.Errorf("GitRepository %s %w", name, err)}
	}

	revision := ""
	if repo.Status.Artifact != nil {
		revision = repo.Status.Artifact.Revision
	}
	return git, revision, nil
}

// source converts what can be followed.
func (r *gitRepository) source() (*v1alpha1.GitSource, error) {
	git := &v1alpha1.GitSource{URL: r.Spec.URL, SecretRef: r.Spec.SecretRef, ProxySecretRef: r.Spec.ProxySecretRef}
	var err error
	if git.Branch, err = r.branch(); err != nil {
		return nil, err
	}

	switch r.Spec.Provider {
	case "", "generic", "github":
	default:
		return nil, fmt.Errorf("has the provider %s, which is not supported: use generic or github", r.Spec.Provider)
	}
	if v := r.Spec.Verify; v != nil {
		if v.Mode != "" && v.Mode != "HEAD" && v.Mode != "head" {
			return nil, fmt.Errorf("verifies %s: a fleet follows a branch, so set spec.verify.mode: HEAD", v.Mode)
		}
		git.Verify = &v1alpha1.VerifySpec{Mode: v1alpha1.VerifyHead, SecretRef: v.SecretRef}
	}

	return git, nil
}

// branch returns the branch that a GitRepository follows.
func (r *gitRepository) branch() (string, error) {
	ref := r.Spec.Ref
	const instead = ": a fleet is the history of a branch, so set spec.ref.branch alone"
	switch {
	case ref == nil:
		return "master", nil // as source-controller has it
	case ref.Commit != "":
		return "", errors.New("is pinned to the commit " + ref.Commit + instead)
	case ref.Name != "":
		branch, ok := strings.CutPrefix(ref.Name, "refs/heads/")
		if !ok {
			return "", errors.New("follows the ref " + ref.Name + instead)
		}
		return branch, nil
	case ref.SemVer != "":
		return "", errors.New("follows the semver range " + ref.SemVer + instead)
	case ref.Tag != "":
		return "", errors.New("follows the tag " + ref.Tag + instead)
	case ref.Branch == "":
		return "master", nil
	}

	return ref.Branch, nil
}
