{{/* The metadata of a pod template: (list $ "issuer" "component" settings annotations). */}}
{{- define "shortmint.podMetadata" -}}
{{- $settings := index . 3 -}}
labels:
  {{- include "shortmint.podLabels" . | nindent 2 }}
  {{- with $settings.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge dict ($settings.podAnnotations | default dict) (index . 4) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What a Prometheus without the operator looks for: (list $ port). With a monitor it would scrape each pod twice. */}}
{{- define "shortmint.scrapeAnnotations" -}}
{{- $monitoring := (index . 0).Values.monitoring -}}
{{- if not (or $monitoring.podMonitor.enabled $monitoring.serviceMonitor.enabled) }}
prometheus.io/scrape: "true"
prometheus.io/port: {{ index . 1 | quote }}
prometheus.io/path: /metrics
{{- end }}
{{- end }}

{{/*
The first part of a pod's spec: (list $ "issuer" settings tolerations). Pods have a ServiceAccount of their own
without a token, because no daemon calls the Kubernetes API.
*/}}
{{- define "shortmint.podSpec" -}}
{{- $root := index . 0 }}{{ $settings := index . 2 -}}
serviceAccountName: {{ include "shortmint.name" . }}
automountServiceAccountToken: false
# Otherwise Services set variables such as RESOLVER_PORT and ETCD_PORT, which the daemons take for settings.
enableServiceLinks: false
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $settings.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $settings.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $settings.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat (index . 3) ($settings.tolerations | default list) }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Tolerations by which the pods of a lost node are replaced after a time of our own. */}}
{{- define "shortmint.nodeLoss" -}}
{{- range list "unreachable" "not-ready" }}
- key: node.kubernetes.io/{{ . }}
  operator: Exists
  effect: NoExecute
  tolerationSeconds: {{ $.Values.nodeLossSeconds }}
{{- end }}
{{- end }}

{{/*
Spread over nodes and zones: (list $ "issuer" settings isDeployment). Nodes that a pod cannot run on are left out,
because DoNotSchedule would wait for them. A constraint without a selector gets that of the workload, and counts
the pods of one revision only, so that a surging pod finds a node.
*/}}
{{- define "shortmint.topologySpread" -}}
{{- $root := index . 0 }}{{ $settings := index . 2 }}
{{- $constraints := $settings.topologySpreadConstraints }}
{{- if kindIs "invalid" $constraints }}{{ $constraints = $root.Values.topologySpreadConstraints }}{{ end }}
{{- $honor := dict "nodeAffinityPolicy" "Honor" "nodeTaintsPolicy" "Honor" }}
{{- $own := dict "labelSelector" (dict "matchLabels" (include "shortmint.selectorLabels" . | fromYaml)) }}
{{- if index . 3 }}{{ $_ := set $own "matchLabelKeys" (list "pod-template-hash") }}{{ end }}
{{- with $constraints -}}
topologySpreadConstraints:
  {{- range . }}
  {{- $constraint := merge (deepCopy .) $honor (hasKey . "labelSelector" | ternary dict $own) }}
  - {{ toYaml $constraint | nindent 4 | trim }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "shortmint.containerSecurity" -}}
{{- with .Values.securityContext -}}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
