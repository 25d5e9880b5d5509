// SPDX-License-Identifier: Apache-2.0

package object

import "slices"

// DefaultScope is the Scope of a kind that no CustomResourceDefinition of the fleet
// defines: as Kubernetes serves it, else as a project that many use does.
func DefaultScope(group, kind string) (namespaced, known bool) {
	if namespaced, known = BuiltinScope(group, kind); known {
		return namespaced, true
	}
	clusterScoped, known := wellKnown[group]
	return known && !slices.Contains(clusterScoped, kind) && !slices.Contains(clusterScoped, "*"), known
}

// wellKnown are API groups of projects, each with its cluster-scoped kinds ("*" is
// all). A repository often has their objects and leaves their definitions to a chart
// (decision 54).
var wellKnown = map[string][]string{
	// Flux
	"source.toolkit.fluxcd.io": nil, "kustomize.toolkit.fluxcd.io": nil, "helm.toolkit.fluxcd.io": nil,
	"notification.toolkit.fluxcd.io": nil, "image.toolkit.fluxcd.io": nil, "fluxcd.controlplane.io": nil, "flagger.app": nil,

	// Argo
	"argoproj.io": {"ClusterWorkflowTemplate", "ClusterAnalysisTemplate"},

	// cert-manager
	"cert-manager.io": {"ClusterIssuer"}, "acme.cert-manager.io": nil, "trust.cert-manager.io": {"Bundle"}, "policy.cert-manager.io": {"CertificateRequestPolicy"},

	// Prometheus, Grafana, OpenTelemetry
	"monitoring.coreos.com": nil, "grafana.integreatly.org": nil, "opentelemetry.io": nil, "loki.grafana.com": nil, "monitoring.grafana.com": nil,

	// Kubernetes' own that are served as custom resources
	"gateway.networking.k8s.io": {"GatewayClass"}, "gateway.networking.x-k8s.io": {"XMesh"}, "multicluster.x-k8s.io": nil, "about.k8s.io": {"ClusterProperty"},
	"policy.networking.k8s.io": {"AdminNetworkPolicy", "BaselineAdminNetworkPolicy", "ClusterNetworkPolicy"},
	"snapshot.storage.k8s.io":  {"VolumeSnapshotClass", "VolumeSnapshotContent"}, "groupsnapshot.storage.k8s.io": {"VolumeGroupSnapshotClass", "VolumeGroupSnapshotContent"},
	"autoscaling.k8s.io": nil, "jobset.x-k8s.io": nil, "leaderworkerset.x-k8s.io": nil,
	"kueue.x-k8s.io": {"ClusterQueue", "ResourceFlavor", "Cohort", "Topology", "AdmissionCheck", "WorkloadPriorityClass", "MultiKueueCluster", "MultiKueueConfig", "ProvisioningRequestConfig"},

	// OpenKruise
	"apps.kruise.io":   {"NodeImage", "NodePodProbe", "ResourceDistribution", "SidecarSet"},
	"policy.kruise.io": nil, "rollouts.kruise.io": nil,

	// Knative
	"serving.knative.dev": nil, "eventing.knative.dev": nil, "sources.knative.dev": nil, "messaging.knative.dev": nil, "flows.knative.dev": nil,
	"operator.knative.dev": nil, "networking.internal.knative.dev": {"ClusterDomainClaim"},

	// Istio
	"networking.istio.io": nil, "security.istio.io": nil, "telemetry.istio.io": nil, "extensions.istio.io": nil, "install.istio.io": nil, "sailoperator.io": {"*"},

	// Crossplane
	"apiextensions.crossplane.io": {"*"}, "pkg.crossplane.io": {"*"}, "secrets.crossplane.io": {"*"},

	// Cluster API
	"cluster.x-k8s.io": nil, "addons.cluster.x-k8s.io": nil, "bootstrap.cluster.x-k8s.io": nil, "controlplane.cluster.x-k8s.io": nil, "ipam.cluster.x-k8s.io": nil,
	"operator.cluster.x-k8s.io": nil, "runtime.cluster.x-k8s.io": {"ExtensionConfig"},
	"infrastructure.cluster.x-k8s.io": {"AWSClusterControllerIdentity", "AWSClusterRoleIdentity", "AWSClusterStaticIdentity"},

	// Secrets
	"external-secrets.io":            {"ClusterSecretStore", "ClusterExternalSecret", "ClusterPushSecret"},
	"generators.external-secrets.io": {"ClusterGenerator"}, "bitnami.com": nil, "isindir.github.com": nil, "secrets-store.csi.x-k8s.io": nil,

	// Policies
	"kyverno.io":              {"ClusterPolicy", "ClusterCleanupPolicy", "GlobalContextEntry"},
	"policies.kyverno.io":     {"ValidatingPolicy", "ImageValidatingPolicy", "MutatingPolicy", "GeneratingPolicy", "DeletingPolicy"},
	"templates.gatekeeper.sh": {"*"}, "constraints.gatekeeper.sh": {"*"}, "mutations.gatekeeper.sh": {"*"}, "config.gatekeeper.sh": nil,

	// Networks
	"cilium.io": {
		"CiliumClusterwideNetworkPolicy", "CiliumClusterwideEnvoyConfig", "CiliumNode", "CiliumIdentity", "CiliumCIDRGroup", "CiliumLoadBalancerIPPool", "CiliumL2AnnouncementPolicy",
		"CiliumEgressGatewayPolicy", "CiliumBGPPeeringPolicy", "CiliumBGPClusterConfig", "CiliumBGPPeerConfig", "CiliumBGPAdvertisement", "CiliumBGPNodeConfig", "CiliumBGPNodeConfigOverride", "CiliumPodIPPool",
	},
	"metallb.io": nil, "traefik.io": nil, "traefik.containo.us": nil, "projectcontour.io": nil, "gateway.envoyproxy.io": nil, "externaldns.k8s.io": nil, "k8s.nginx.org": nil,

	// Workloads, data, pipelines
	"keda.sh":    {"ClusterTriggerAuthentication"},
	"tekton.dev": {"ClusterTask"}, "triggers.tekton.dev": {"ClusterTriggerBinding", "ClusterInterceptor"}, "operator.tekton.dev": {"*"},
	"batch.volcano.sh": nil, "scheduling.volcano.sh": {"Queue"}, "bus.volcano.sh": nil, "ray.io": nil, "sparkoperator.k8s.io": nil, "flink.apache.org": nil, "kubeflow.org": {"Profile"},
	"postgresql.cnpg.io": {"ClusterImageCatalog"}, "kafka.strimzi.io": nil, "core.strimzi.io": nil, "acid.zalan.do": nil, "elasticsearch.k8s.elastic.co": nil, "kibana.k8s.elastic.co": nil,
	"velero.io": nil, "longhorn.io": nil, "helm.cattle.io": nil, "karpenter.sh": {"NodePool", "NodeClaim"}, "karpenter.k8s.aws": {"EC2NodeClass"}, "nvidia.com": {"ClusterPolicy"},
	"operators.coreos.com": {"Operator", "OLMConfig"},
}
