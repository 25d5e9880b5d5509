// SPDX-License-Identifier: Apache-2.0

package interpret

// flux are the sources and reconcilers of Flux. They say in the condition Ready
// how they do.
var flux = []*Kind{
	{
		APIVersion: "source.toolkit.fluxcd.io/v1", Kind: "GitRepository",
		names:   []naming{{"Secret", "spec.secretRef.name"}, {"Secret", "spec.verify.secretRef.name"}},
		healthy: ready("Succeeded"),
		reports: &reflection{fields: []string{"conditions", "artifact", "observedGeneration", "observedIgnore", "observedRecurseSubmodules", "lastHandledReconcileAt"}, counts: true},
		adds:    addition{last: []string{"artifact", "lastHandledReconcileAt"}, conditions: mergedConditions, generation: true}.rule(),
	},
	{
		APIVersion: "source.toolkit.fluxcd.io/v1beta2", Kind: "OCIRepository",
		names: []naming{
			{"Secret", "spec.secretRef.name"}, {"Secret", "spec.verify.secretRef.name"}, {"Secret", "spec.certSecretRef.name"},
			{"ServiceAccount", "spec.serviceAccountName"},
		},
		healthy: ready("Succeeded"),
		reports: &reflection{fields: []string{"conditions", "url", "artifact", "observedGeneration", "observedIgnore", "observedLayerSelector", "lastHandledReconcileAt"}, counts: true},
		adds:    addition{last: []string{"artifact", "lastHandledReconcileAt", "url"}, conditions: mergedConditions, generation: true}.rule(),
	},
	{
		APIVersion: "source.toolkit.fluxcd.io/v1beta2", Kind: "HelmRepository",
		names:   []naming{{"Secret", "spec.secretRef.name"}},
		healthy: ready("Succeeded"),
		reports: &reflection{fields: []string{"conditions", "artifact", "observedGeneration", "url", "lastHandledReconcileAt"}, counts: true},
		adds:    addition{last: []string{"artifact", "lastHandledReconcileAt", "url"}, conditions: mergedConditions, generation: true}.rule(),
	},
	{
		APIVersion: "source.toolkit.fluxcd.io/v1beta2", Kind: "Bucket",
		names:   []naming{{"Secret", "spec.secretRef.name"}},
		healthy: ready("Succeeded"),
		reports: &reflection{fields: []string{"conditions", "artifact", "observedIgnore", "observedGeneration", "url"}, counts: true},
		adds:    addition{last: []string{"artifact", "url"}, conditions: mergedConditions, generation: true}.rule(),
	},
	{
		APIVersion: "source.toolkit.fluxcd.io/v1beta2", Kind: "HelmChart",
		names:   []naming{{"Secret", "spec.verify.secretRef.name"}},
		healthy: ready("Succeeded", "ChartPullSucceeded"),
		reports: &reflection{fields: []string{"conditions", "artifact", "observedChartName", "observedGeneration", "observedSourceArtifactRevision", "url"}, counts: true},
		adds:    addition{last: []string{"artifact", "observedChartName", "observedSourceArtifactRevision", "url"}, conditions: mergedConditions, generation: true}.rule(),
	},
	{
		APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization",
		names: []naming{
			{"Secret", "spec.decryption.secretRef.name"}, {"Secret", "spec.kubeConfig.secretRef.name"}, {"ServiceAccount", "spec.serviceAccountName"},
		},
		healthy: ready("ReconciliationSucceeded"),
		reports: &reflection{fields: []string{"conditions", "lastAppliedRevision", "lastAttemptedRevision", "observedGeneration"}, counts: true},
		adds:    addition{last: []string{"lastAppliedRevision", "lastAttemptedRevision"}, conditions: mergedConditions, generation: true}.rule(),
	},
	{
		APIVersion: "helm.toolkit.fluxcd.io/v2beta1", Kind: "HelmRelease",
		names: []naming{
			{"", "spec.valuesFrom.*"}, {"Secret", "spec.chart.spec.verify.secretRef.name"}, {"Secret", "spec.kubeConfig.secretRef.name"},
			{"ServiceAccount", "spec.serviceAccountName"},
		},
		healthy: ready("ReconciliationSucceeded"),
		reports: &reflection{fields: append(append([]string{"conditions", "observedGeneration"}, releaseFields...), releaseCounters...), counts: true},
		adds:    addition{tally: releaseCounters, last: releaseFields, conditions: mergedConditions, generation: true}.rule(),
	},
}

var (
	releaseFields   = []string{"lastAttemptedRevision", "lastAppliedRevision", "lastAttemptedValuesChecksum", "helmChart", "lastReleaseRevision"}
	releaseCounters = []string{"failures", "upgradeFailures", "installFailures"}
)
