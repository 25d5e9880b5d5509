// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	fluxclient "github.com/fluxcd/pkg/runtime/client"
	fluxcontroller "github.com/fluxcd/pkg/runtime/controller"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/fairlead/fairlead/api/fleet/v1alpha1"
	"github.com/fairlead/fairlead/controller"
	"github.com/fairlead/fairlead/install"
	"github.com/fairlead/fairlead/testenv/kubetest"
)

func TestMain(m *testing.M) {
	install.Interval = 20 * time.Millisecond
	os.Exit(m.Run())
}

// TestInstall is the life of an installation on one real API server: kustomize's, the
// program's over it, Fleets, and the end. Nobody runs pods there, so that the test reports
// on the StatefulSet and on Fleets as controllers would.
func TestInstall(t *testing.T) {
	server := kubetest.Start(t, 1)[0]
	k := kubetest.NewKubectl(t, server.Kubeconfig())

	t.Run("kustomize and the program apply the same", func(t *testing.T) { applySame(t, k) })
	t.Run("the program goes on from kustomize", func(t *testing.T) { installOver(t, server, k) })
	t.Run("the pod passes Pod Security restricted", func(t *testing.T) { podSecurity(t, k) })
	t.Run("what the controller may do", func(t *testing.T) {
		canI(t, k, controllerMay, "system:serviceaccount:fairlead-system:fairlead-controller")
	})
	t.Run("what it may do with Flux's kind", func(t *testing.T) { gitRepositories(t, k) })
	t.Run("a server refuses a bad Fleet", func(t *testing.T) { refuseFleets(t, k) })
	t.Run("kubectl knows the kind", func(t *testing.T) { knowKind(t, k) })
	t.Run("samples", func(t *testing.T) { samples(t, k) })
	t.Run("create a Fleet", func(t *testing.T) { createFleet(t, server, k) })
	t.Run("the controller runs with its roles", func(t *testing.T) { controllerRuns(t, server, k) })
	t.Run("reconcile a Fleet", func(t *testing.T) { reconcileFleet(t, server, k) })
	t.Run("uninstall", func(t *testing.T) { uninstall(t, server, k) })
}

// applySame applies config/default with kubectl, then what the program exports, which
// changes nothing.
func applySame(t *testing.T, k *kubetest.Kubectl) {
	if out := k.Run(t, "apply -k ../config/default"); strings.Count(out, " created\n") < 15 {
		t.Fatal(out)
	}
	objects, err := install.Manifests(install.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var export bytes.Buffer
	if err := install.Write(&export, objects...); err != nil {
		t.Fatal(err)
	}
	out, err := k.Try(export.String(), "apply", "-f", "-")
	if err != nil || strings.Count(out, " unchanged\n") != len(objects) {
		t.Errorf("%v\n%s", err, out)
	}
}

// installOver installs over what is there, and waits until the StatefulSet is ready.
func installOver(t *testing.T, server *kubetest.Server, k *kubetest.Kubectl) {
	var report sync.Once
	told := &steps{on: func(line string) {
		if line == "◎ verifying installation" {
			report.Do(func() { ready(t, k, `{"observedGeneration":9,"replicas":1,"updatedReplicas":1,"readyReplicas":1}`) })
		}
	}}
	cluster := told.connect(t, server)
	objects, err := install.Manifests(install.Options{Version: "v1.2.0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Install(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
	told.want(t, "✚ CustomResourceDefinition/fleets.fairlead.dev configured", "✚ StatefulSet/fairlead-system/fairlead-controller configured", "✔ fairlead-controller: statefulset ready")

	// A second time there is nothing to do.
	again := &steps{}
	if err := again.connect(t, server).Install(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(again.String(), " unchanged\n"); n != len(objects) {
		t.Errorf("%d of %d are unchanged:\n%s", n, len(objects), again)
	}

	// What is not ready in time is told with what it lacks.
	ready(t, k, `{"updatedReplicas":1,"readyReplicas":0}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	late := &steps{on: func(line string) {
		if line == "◎ 0 of 1 replicas are ready" {
			cancel()
		}
	}}
	err = late.connect(t, server).Install(ctx, objects)
	if err == nil || err.Error() != "StatefulSet/fairlead-system/fairlead-controller: interrupted: 0 of 1 replicas are ready" {
		t.Errorf("not ready: %v", err)
	}
}

func ready(t *testing.T, k *kubetest.Kubectl, status string) {
	k.Run(t, "patch statefulset fairlead-controller -n fairlead-system --subresource=status --type=merge -p {\"status\":"+status+"}")
}

// podSecurity asks the API server's own admission, which knows of the namespace's level.
func podSecurity(t *testing.T, k *kubetest.Kubectl) {
	set := parse(t, k.Run(t, "get statefulset fairlead-controller -n fairlead-system -o yaml"))[0]
	spec, _, _ := unstructured.NestedMap(set.Object, "spec", "template", "spec")
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": spec}}
	pod.SetName("template")
	pod.SetNamespace(install.Namespace)

	var manifest bytes.Buffer
	if err := install.Write(&manifest, pod); err != nil {
		t.Fatal(err)
	}
	if out, err := k.Try(manifest.String(), "create", "--dry-run=server", "-f", "-"); err != nil || strings.Contains(out, "Warning") {
		t.Errorf("%v\n%s", err, out)
	}

	// A pod that does less is refused there: the level is enforced.
	unstructured.RemoveNestedField(pod.Object, "spec", "containers")
	if err := unstructured.SetNestedSlice(pod.Object, []any{map[string]any{"name": "a", "image": "a"}}, "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	manifest.Reset()
	if err := install.Write(&manifest, pod); err != nil {
		t.Fatal(err)
	}
	if out, err := k.Try(manifest.String(), "create", "--dry-run=server", "-f", "-"); err == nil || !strings.Contains(out, `violates PodSecurity "restricted:latest"`) {
		t.Errorf("%v\n%s", err, out)
	}
}

// controllerMay is what the account of the controller may do: docs/rbac.md has the reasons.
var controllerMay = map[string]string{
	"get fleets -n apps": "yes", "watch fleets -A": "yes", "patch fleets -n apps": "yes",
	"update fleets --subresource=status -n apps": "yes", "update fleets --subresource=finalizers -n apps": "yes",
	"create fleets -n apps": "no", "delete fleets -n apps": "no",
	"get secrets -n apps": "yes", "list secrets -A": "yes", "watch secrets -A": "yes",
	"create secrets -n apps": "no", "update secrets -n apps": "no", "patch secrets -n apps": "no", "delete secrets -n apps": "no",
	"create secrets -n fairlead-system": "no",
	"create events -n apps":             "yes", "patch events -n apps": "yes", "list events -n apps": "no",
	"create events.events.k8s.io -n apps":                  "yes",
	"create leases.coordination.k8s.io -n fairlead-system": "yes", "update leases.coordination.k8s.io -n fairlead-system": "yes",
	"get leases.coordination.k8s.io -n kube-system": "no", "delete leases.coordination.k8s.io -n fairlead-system": "no",
	"impersonate serviceaccounts -n apps": "no", "create serviceaccounts --subresource=token -n apps": "no",
	"get configmaps -n apps": "no", "list pods -A": "no", "get nodes": "no", "create pods -n fairlead-system": "no",
	"create tokenreviews.authentication.k8s.io": "no", "patch customresourcedefinitions": "no", "bind clusterroles": "no", "escalate clusterroles": "no",
}

func canI(t *testing.T, k *kubetest.Kubectl, may map[string]string, account string) {
	for what, want := range may {
		out, _ := k.Try("", append([]string{"auth", "can-i", "--as=" + account}, strings.Fields(what)...)...)
		if answer := strings.Fields(out)[len(strings.Fields(out))-1]; answer != want {
			t.Errorf("%s: %s", what, out)
		}
	}
}

// gitRepositories is about a kind that the cluster need not have, which can-i would not
// find.
func gitRepositories(t *testing.T, k *kubetest.Kubectl) {
	for verb, want := range map[string]string{"get": "true", "list": "true", "watch": "true", "patch": "false", "create": "false"} {
		review := `{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": "system:serviceaccount:fairlead-system:fairlead-controller",
			"resourceAttributes": {"group": "source.toolkit.fluxcd.io", "resource": "gitrepositories", "namespace": "apps", "verb": "` + verb + `"}}}`
		if out, err := k.Try(review, "create", "-f", "-", "-o", "jsonpath={.status.allowed}"); err != nil || out != want {
			t.Errorf("%s: %s %v", verb, out, err)
		}
	}
}

// refuseFleets has the server judge what the schema says.
func refuseFleets(t *testing.T, k *kubetest.Kubectl) {
	for name, test := range map[string]struct{ spec, want string }{
		"both sources":          {`{git: {url: "https://x/y"}, sourceRef: {kind: GitRepository, name: a}}`, "specify exactly one of spec.git and spec.sourceRef"},
		"no source":             {`{interval: 1m}`, "specify exactly one of spec.git and spec.sourceRef"},
		"a bare number":         {`{git: {url: "https://x/y"}, interval: "60"}`, "spec.interval: Invalid value"},
		"a duration in words":   {`{git: {url: "https://x/y"}, timeout: soon}`, "spec.timeout: Invalid value"},
		"a scheme of no use":    {`{git: {url: "file:///etc"}}`, "spec.git.url: Invalid value"},
		"scp instead of a URL":  {`{git: {url: "git@host:acme/fleet"}}`, "spec.git.url: Invalid value"},
		"a program as a URL":    {`{git: {url: "ext::sh -c id"}}`, "spec.git.url: Invalid value"},
		"a Secret without name": {`{git: {url: "https://x/y", secretRef: {}}}`, "spec.git.secretRef.name: Required value"},
		"another source":        {`{sourceRef: {kind: Bucket, name: a}}`, `Unsupported value: "Bucket"`},
		"another decryption":    {`{git: {url: "https://x/y"}, decryption: {provider: vault, secretRef: {name: a}}}`, `Unsupported value: "vault"`},
		"a mode of nothing":     {`{git: {url: "https://x/y", verify: {mode: Tag, secretRef: {name: a}}}}`, `Unsupported value: "Tag"`},
		"a field of nobody":     {`{git: {url: "https://x/y"}, deletionPolicy: Delete}`, ".spec.deletionPolicy: field not declared in schema"},
	} {
		manifest := "apiVersion: fairlead.dev/v1alpha1\nkind: Fleet\nmetadata: {name: bad, namespace: default}\nspec: " + test.spec + "\n"
		out, err := k.Try(manifest, "apply", "--server-side", "--validate=strict", "-f", "-")
		if err == nil || !strings.Contains(out, test.want) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

func knowKind(t *testing.T, k *kubetest.Kubectl) {
	if out := k.Run(t, "explain fleet.spec.git"); !strings.Contains(out, "GitSource") && !strings.Contains(out, "URL is an https://") {
		t.Error(out)
	}
	k.Run(t, "apply -f testdata/acme.yaml")
	k.Run(t, `patch fleet acme -n default --subresource=status --type=merge -p `+readyStatus("", "True", "ReconciliationSucceeded", "applied"))
	for args, want := range map[string][]string{
		"get fleets":     {"NAME", "AGE", "READY", "STATUS", "acme", "True", "applied"},
		"get fl -o wide": {"CLUSTERS", "HELD", "REVISION", "10/12", "6", "main@sha1:0123"},
		"get fairlead":   {"acme"},
		"get all":        {"fleet.fairlead.dev/acme"},
		"get fleet acme -o jsonpath={.spec.path}":            {"./"},
		"wait fleet/acme --for=condition=ready --timeout=5s": {"condition met"},
	} {
		out := k.Run(t, args)
		for _, word := range want {
			if !strings.Contains(out, word) {
				t.Errorf("kubectl %s: no %s in\n%s", args, word, out)
			}
		}
	}
}

func readyStatus(token, status, reason, message string) string {
	return fmt.Sprintf(`{"status":{"observedGeneration":1,"lastHandledReconcileAt":%q,"lastAppliedRevision":"main@sha1:0123",`+
		`"clusters":{"total":12,"current":10,"inProgress":0,"held":2,"pending":0,"failed":0,"unknown":0,"summary":"10/12"},"works":{"total":9,"held":6,"deferred":0,"blocked":0},`+
		`"conditions":[{"type":"Ready","observedGeneration":1,"status":%q,"reason":%q,"message":%q,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, token, status, reason, message)
}

// samples are accepted as they are.
func samples(t *testing.T, k *kubetest.Kubectl) {
	k.Run(t, "create namespace fleets")
	if out := k.Run(t, "apply -k ../config/samples --dry-run=server --validate=strict"); strings.Count(out, "(server dry run)") < 10 {
		t.Error(out)
	}
}

// createFleet creates one, of which the test reports that it is ready, and one of which it
// reports that it is not.
func createFleet(t *testing.T, server *kubetest.Server, k *kubetest.Kubectl) {
	fleet, err := install.NewFleet(install.FleetOptions{Name: "shop", Namespace: "default", URL: "https://git.example.com/shop", Interval: time.Minute, KubeConfigSecret: "members"})
	if err != nil {
		t.Fatal(err)
	}
	told := &steps{on: func(line string) {
		if line == "◎ waiting for Fleet reconciliation" {
			k.Run(t, "patch fleet shop --subresource=status --type=merge -p "+readyStatus("", "True", "ReconciliationSucceeded", "ok"))
		}
	}}
	message, err := told.connect(t, server).CreateFleet(t.Context(), fleet)
	if err != nil || message != "ok" {
		t.Fatalf("%q, %v", message, err)
	}
	told.want(t, "✚ Fleet/default/shop created", "◎ waiting for Fleet reconciliation")
	if got := k.Run(t, "get fleet shop -o jsonpath={.spec}"); got != `{"git":{"url":"https://git.example.com/shop"},"interval":"1m0s","members":{"kubeConfig":{"secretRef":{"name":"members"}}},"path":"./"}` {
		t.Error(got)
	}

	k.Run(t, "patch fleet shop --subresource=status --type=merge -p "+readyStatus("", "False", "AuthenticationFailed", "401"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	retried := &steps{on: func(line string) {
		if line == "◎ AuthenticationFailed: 401" {
			cancel()
		}
	}}
	_, err = retried.connect(t, server).CreateFleet(ctx, fleet)
	if err == nil || err.Error() != "Fleet/default/shop: interrupted: AuthenticationFailed: 401" {
		t.Error(err)
	}

	if _, err := install.NewFleet(install.FleetOptions{SourceRef: "Bucket/acme"}); err == nil {
		t.Error("a Fleet follows a Bucket")
	}
	beside, err := install.NewFleet(install.FleetOptions{Name: "beside", SourceRef: "GitRepository/acme.flux-system"})
	if ref, _, _ := unstructured.NestedStringMap(beside.Object, "spec", "sourceRef"); err != nil || ref["name"] != "acme" || ref["namespace"] != "flux-system" {
		t.Errorf("%v, %v", ref, err)
	}
}

// controllerRuns starts the real controller as the account that was installed for it, with
// leader election: it takes up a Fleet, whose repository does not answer, and nothing that
// it does is forbidden.
func controllerRuns(t *testing.T, server *kubetest.Server, k *kubetest.Kubectl) {
	config := server.Config()
	config.TLSClientConfig.CertData, config.TLSClientConfig.KeyData = nil, nil
	config.BearerToken = strings.TrimSpace(k.Run(t, "create token fairlead-controller -n fairlead-system"))

	var mu sync.Mutex
	var lines strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Run(ctx, config, controller.Options{
			Namespace: install.Namespace, StoragePath: t.TempDir(), MetricsAddr: "0", HealthAddr: "0", WebhookAddr: "0",
			Watch: fluxcontroller.WatchOptions{AllNamespaces: true}, Client: fluxclient.Options{QPS: 50, Burst: 300},
			LeaderElection: leaderelection.Options{Enable: true, ReleaseOnCancel: true, LeaseDuration: 35 * time.Second, RenewDeadline: 30 * time.Second, RetryPeriod: 5 * time.Second},
			Log: funcr.New(func(_, text string) {
				mu.Lock()
				defer mu.Unlock()
				lines.WriteString(text + "\n")
			}, funcr.Options{}),
		})
	}()
	k.Run(t, "create secret generic git -n default --from-literal=username=a --from-literal=password=b")
	if out, err := k.Try("apiVersion: fairlead.dev/v1alpha1\nkind: Fleet\nmetadata: {name: real, namespace: default}\nspec: {git: {url: \"https://127.0.0.1:1/fleet\", secretRef: {name: git}}}\n", "create", "-f", "-"); err != nil {
		t.Fatal(out)
	}
	k.Run(t, "wait fleet/real -n default --for=condition=ready=false --timeout=60s")
	if out := k.Run(t, "get fleet real -n default -o jsonpath={.metadata.finalizers}"); out != `["`+fleetv1alpha1.Finalizer+`"]` {
		t.Errorf("the finalizers are %s", out)
	}
	k.Run(t, "wait lease/fairlead-controller-leader-election -n fairlead-system --for=jsonpath={.spec.holderIdentity} --timeout=60s")
	if out, err := k.Try("", "delete", "fleet", "real", "-n", "default", "--timeout=30s"); err != nil {
		t.Error(out)
	}

	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for line := range strings.Lines(lines.String()) {
		if strings.Contains(strings.ToLower(line), "forbidden") {
			t.Error(line)
		}
	}
	if out := k.Run(t, "get events -n default --field-selector involvedObject.kind=Fleet,involvedObject.name=real"); !strings.Contains(out, "real") {
		t.Errorf("no event: %s\n%s", out, lines.String())
	}
}

// reconcileFleet asks, and answers as the controller does, with the token that was asked
// with.
func reconcileFleet(t *testing.T, server *kubetest.Server, k *kubetest.Kubectl) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 5000, time.UTC)
	key := types.NamespacedName{Namespace: "default", Name: "shop"}
	answer := func(status, reason, message string) *steps {
		return &steps{on: func(line string) {
			if line != "◎ waiting for Fleet reconciliation" {
				return
			}
			token := k.Run(t, `get fleet shop -o jsonpath={.metadata.annotations.reconcile\.fluxcd\.io/requestedAt}`)
			k.Run(t, "patch fleet shop --subresource=status --type=merge -p "+readyStatus(token, status, reason, message))
		}}
	}

	told := answer("True", "ReconciliationSucceeded", "ok")
	message, err := told.connect(t, server).Reconcile(t.Context(), key, now)
	if err != nil || message != "ok" {
		t.Errorf("%q, %v", message, err)
	}
	if got := k.Run(t, "get fleet shop -o jsonpath={.status.lastHandledReconcileAt}"); got != "2026-01-01T12:00:00.000005Z" {
		t.Error(got)
	}
	_, err = answer("False", "CommitRefused", "a.yaml:1").connect(t, server).Reconcile(t.Context(), key, now.Add(time.Second))
	if err == nil || err.Error() != "Fleet/default/shop: CommitRefused: a.yaml:1" {
		t.Error(err)
	}

	// Nobody answers.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ignored := &steps{on: func(line string) {
		if line == "◎ the controller has not handled the request yet" {
			cancel()
		}
	}}
	_, err = ignored.connect(t, server).Reconcile(ctx, key, now.Add(time.Minute))
	if err == nil || !strings.Contains(err.Error(), "interrupted: the controller has not handled the request yet") {
		t.Error(err)
	}
	_, err = (&steps{}).connect(t, server).Reconcile(t.Context(), types.NamespacedName{Namespace: "default", Name: "none"}, now)
	if err == nil || err.Error() != "there is no Fleet/default/none" {
		t.Error(err)
	}
	k.Run(t, `patch fleet shop --type=merge -p {"spec":{"suspend":true}}`)
	_, err = (&steps{}).connect(t, server).Reconcile(t.Context(), key, now)
	if err == nil || !strings.Contains(err.Error(), "is suspended") {
		t.Error(err)
	}
}

// uninstall leaves what it is told to leave; Fleets lose the finalizer, which nobody would
// remove any more. Somebody else's pod keeps the namespace.
func uninstall(t *testing.T, server *kubetest.Server, k *kubetest.Kubectl) {
	k.Run(t, `patch fleet shop --type=merge -p {"metadata":{"finalizers":["finalizers.fairlead.dev/fleet"]}}`)
	objects, err := install.Installed(install.Options{})
	if err != nil {
		t.Fatal(err)
	}

	k.Run(t, "apply -f ../config/page/role.yaml -f ../config/page/role_binding.yaml -f ../config/page/service.yaml -f ../config/page/network_policy.yaml -f ../config/sharding/role.yaml -f ../config/sharding/role_binding.yaml -f ../config/sharding/pod_disruption_budget.yaml")
	k.Run(t, "label namespace fairlead-system pod-security.kubernetes.io/enforce=privileged --overwrite")
	k.Run(t, `run other -n fairlead-system --image=a --overrides={"spec":{"serviceAccountName":"fairlead-controller"}}`)
	k.Run(t, `run controller -n fairlead-system --image=a --labels=app=fairlead-controller,app.kubernetes.io/part-of=fairlead --overrides={"spec":{"serviceAccountName":"fairlead-controller"}}`)
	told := &steps{on: func(line string) {
		if line == "◎ waiting for the controller to end" { // it drains, and ends
			if out := k.Run(t, "get statefulsets -n fairlead-system -o name"); out != "" {
				t.Errorf("while the controller drains there is still %s", out)
			}
			k.Run(t, "delete pod controller -n fairlead-system --force --grace-period=0")
		}
	}}
	if err := told.connect(t, server).Uninstall(t.Context(), objects, install.Keep{CRDs: true}); err != nil {
		t.Fatal(err)
	}
	told.want(t, "✚ Fleet/default/shop finalizer removed", "✔ CustomResourceDefinition/fleets.fairlead.dev kept: --keep-crds",
		"✔ Namespace/fairlead-system kept: Pod other in it is not fairlead's", "✔ ClusterRole/fairlead-controller deleted")
	if out := k.Run(t, "get fleet shop -o jsonpath={.metadata.finalizers}"); out != "" {
		t.Errorf("the finalizers are %s", out)
	}

	k.Run(t, "delete pod other -n fairlead-system --force --grace-period=0")
	again := &steps{}
	if err := again.connect(t, server).Uninstall(t.Context(), objects, install.Keep{}); err != nil {
		t.Fatal(err)
	}
	again.want(t, "✔ Namespace/fairlead-system deleted", "✔ CustomResourceDefinition/fleets.fairlead.dev deleted")
	if out := k.Run(t, "get clusterroles,clusterrolebindings,customresourcedefinitions -o name"); strings.Contains(out, "fairlead") {
		t.Errorf("left: %s", out)
	}

	// A third time there is nothing, and a Fleet cannot be created.
	if err := (&steps{}).connect(t, server).Uninstall(t.Context(), objects[:1], install.Keep{}); err != nil {
		t.Error(err)
	}
	_, err = (&steps{}).connect(t, server).Reconcile(t.Context(), types.NamespacedName{Namespace: "default", Name: "shop"}, time.Now())
	if err == nil || !strings.Contains(err.Error(), "'fairlead install' first") {
		t.Error(err)
	}
}

// Without an answer the error says so.
func TestConnect(t *testing.T) {
	if _, err := install.Connect("nowhere.yaml", "", nil); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// steps are the lines that were told.
type steps struct {
	on func(line string)

	lines []string
}

func (s *steps) connect(t *testing.T, server *kubetest.Server) *install.Cluster {
	t.Helper()
	cluster, err := install.For(server.Config(), func(mark install.Mark, text string) {
		line := string(mark) + " " + text
		s.lines = append(s.lines, line)
		if s.on != nil {
			s.on(line)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func (s *steps) String() string { return strings.Join(s.lines, "\n") + "\n" }

func (s *steps) want(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !slices.Contains(s.lines, line) {
			t.Errorf("%q was not told:\n%s", line, s)
		}
	}
}
