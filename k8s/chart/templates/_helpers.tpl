{{/* The name of an object: (list $ "issuer"). */}}
{{- define "shortmint.name" -}}
{{ (index . 0).Values.namePrefix }}{{ index . 1 }}
{{- end }}

{{/*
Labels by which pods are selected: (list $ "issuer"). A selector cannot be changed once applied, so nothing that
differs between versions belongs here.
*/}}
{{- define "shortmint.selectorLabels" -}}
app.kubernetes.io/name: {{ include "shortmint.name" . }}
app.kubernetes.io/part-of: {{ (index . 0).Release.Name }}
{{- end }}

{{/* Labels of pods: (list $ "issuer" "component"). */}}
{{- define "shortmint.podLabels" -}}
app.kubernetes.io/name: {{ include "shortmint.name" . }}
app.kubernetes.io/component: {{ index . 2 }}
app.kubernetes.io/part-of: {{ (index . 0).Release.Name }}
{{- end }}

{{/* Labels of objects: (list $ "issuer" "component"). */}}
{{- define "shortmint.labels" -}}
{{ include "shortmint.podLabels" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version | replace "+" "_" }}
{{- end }}

{{/* (list $ image) */}}
{{- define "shortmint.image" -}}
{{- $root := index . 0 }}{{ $image := index . 1 -}}
{{- with $root.Values.imageRegistry }}{{ . }}/{{ end }}
{{- $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "shortmint.scheme" -}}
{{ ternary "https" "http" .Values.tls.enabled }}
{{- end }}

{{- define "shortmint.issuerUrls" -}}
{{- $urls := list }}{{ $name := include "shortmint.name" (list $ "issuer") }}
{{- range $index := until (int .Values.issuer.replicas) }}
{{- $urls = append $urls (printf "%s://%s-%d.%s:7070" (include "shortmint.scheme" $) $name $index $name) }}
{{- end }}
{{- join "," $urls }}
{{- end }}

{{- define "shortmint.etcdEndpoints" -}}
{{- if .Values.dev.enabled }}http://{{ include "shortmint.name" (list . "etcd") }}:2379
{{- else }}{{ join "," .Values.etcd.endpoints }}
{{- end }}
{{- end }}

{{/* The data of the ConfigMap. Its hash is part of the name. */}}
{{- define "shortmint.configData" -}}
# Every member by its own name, not one balanced address: the client must be able to leave a dead
# member.
etcd-endpoints: {{ include "shortmint.etcdEndpoints" . }}
# Part of every ledger key in etcd. Fixed for the life of the installation: another name is another,
# empty ledger.
cluster-name: {{ .Values.clusterName | quote }}
# One name per replica of the issuer, each spelled as that pod advertises itself. Never one balanced
# address: only the leader allocates, and a follower's answer names the leader by exactly this URL.
issuer-urls: {{ include "shortmint.issuerUrls" . }}
# What short links begin with, as the world sees it, in front of any proxy.
public-url: {{ .Values.publicUrl }}
# The networks of the pods or load balancers in front, as CIDRs. Required behind an Ingress: otherwise
# all visitors are one client to every limit. Only networks in which no other client connects. The
# loopback alone trusts none.
trusted-proxies: {{ .Values.trustedProxies | default (list "127.0.0.0/8") | join "," }}
{{- end }}

{{- define "shortmint.configName" -}}
{{- $hash := include "shortmint.configData" . | fromYaml | toJson | sha256sum | trunc 10 -}}
{{ include "shortmint.name" (list . "shortmint") }}-{{ $hash }}
{{- end }}

{{/* Restricted Pod Security, for the pod. */}}
{{- define "shortmint.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
# Makes the files of the Secrets readable to the daemon only.
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* Restricted Pod Security, for a container. */}}
{{- define "shortmint.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
    - ALL
{{- end }}

{{/* Spread over nodes and zones: (list $ "issuer" isDeployment). */}}
{{- define "shortmint.topologySpread" -}}
{{- $root := index . 0 }}{{ $deployment := index . 2 -}}
{{- if or $root.Values.topologySpread.nodes $root.Values.topologySpread.zones -}}
# ScheduleAnyway lets a cluster of one node run this too. With three nodes or more, say DoNotSchedule.
topologySpreadConstraints:
  {{- $spread := $root.Values.topologySpread }}
  {{- range list (list "kubernetes.io/hostname" $spread.nodes) (list "topology.kubernetes.io/zone" $spread.zones) }}
  {{- if index . 1 }}
  - maxSkew: 1
    topologyKey: {{ index . 0 }}
    whenUnsatisfiable: {{ index . 1 }}
    labelSelector:
      matchLabels:
        {{- include "shortmint.selectorLabels" $ | nindent 8 }}
    {{- if $deployment }}
    # Counts the pods of one revision only, so that a surging pod finds a node.
    matchLabelKeys:
      - pod-template-hash
    {{- end }}
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Where pods may run: the settings of a workload. */}}
{{- define "shortmint.placement" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "shortmint.imagePullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The port of the public Services. */}}
{{- define "shortmint.publicPort" -}}
{{ ternary "https" "http" .Values.publicTls.enabled }}
{{- end }}

{{/* The annotations that make an object a hook, by `migrate.hook`: (list $ weight). */}}
{{- define "shortmint.hookAnnotations" -}}
{{- $root := index . 0 }}{{ $weight := index . 1 -}}
{{- if eq $root.Values.migrate.hook "helm" }}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ $weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation
{{- else if eq $root.Values.migrate.hook "argo" }}
argocd.argoproj.io/hook: PreSync
argocd.argoproj.io/hook-delete-policy: BeforeHookCreation
argocd.argoproj.io/sync-wave: {{ $weight | quote }}
{{- end }}
{{- end }}

{{/* A rule of a NetworkPolicy: (list "from" peers port …). No peers are any peer; a port in quotes is for UDP. */}}
{{- define "shortmint.allow" -}}
- ports:
    {{- range rest (rest .) }}
    - protocol: {{ kindIs "string" . | ternary "UDP" "TCP" }}
      port: {{ . }}
    {{- end }}
  {{- with index . 1 }}
  {{ index $ 0 }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* A rule for pods of this release: (list $ "from" port "issuer" …). */}}
{{- define "shortmint.allowPods" -}}
{{- $root := index . 0 }}{{ $peers := list }}
{{- range slice . 3 }}
{{- $labels := include "shortmint.selectorLabels" (list $root .) | fromYaml }}
{{- $peers = append $peers (dict "podSelector" (dict "matchLabels" $labels)) }}
{{- end }}
{{- include "shortmint.allow" (list (index . 1) $peers (index . 2)) }}
{{- end }}

{{/* Egress to Postgres, whether it is a pod of `dev` or elsewhere. */}}
{{- define "shortmint.policyPostgres" -}}
{{- if .Values.dev.enabled -}}
{{ include "shortmint.allowPods" (list . "to" 5432 "postgres") }}
{{- else -}}
{{ include "shortmint.allow" (list "to" .Values.networkPolicy.postgres.to .Values.networkPolicy.postgres.port) }}
{{- end }}
{{- end }}

{{/* Egress to the name servers. */}}
{{- define "shortmint.policyDns" -}}
# Names.
{{ include "shortmint.allow" (list "to" .Values.networkPolicy.dns.to "53" 53) }}
{{- end }}

{{/* Egress of daemons: names, and traces if they are sent. */}}
{{- define "shortmint.policyDaemon" -}}
{{ include "shortmint.policyDns" . }}
{{- if .Values.telemetry.otlp.endpoint }}
# Traces.
{{ include "shortmint.allow" (list "to" .Values.networkPolicy.otlp.to .Values.networkPolicy.otlp.port) }}
{{- end }}
{{- end }}

{{/* Settings of tracing: (list $ "RESOLVER"). */}}
{{- define "shortmint.otlpEnv" -}}
{{- $otlp := (index . 0).Values.telemetry.otlp -}}
{{- with $otlp.endpoint }}
- name: {{ index $ 1 }}_OTLP
  value: {{ . }}
{{- if and (eq (index $ 1) "RESOLVER") (not (kindIs "invalid" $otlp.traceShare)) }}
- name: RESOLVER_TRACE_SHARE
  value: {{ $otlp.traceShare | quote }}
{{- end }}
{{- end }}
{{- end }}
