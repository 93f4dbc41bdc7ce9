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

{{/* Labels of all pods and objects of a component: (list $ "issuer" "component"). */}}
{{- define "shortmint.podLabels" -}}
app.kubernetes.io/name: {{ include "shortmint.name" . }}
app.kubernetes.io/component: {{ index . 2 }}
app.kubernetes.io/part-of: {{ (index . 0).Release.Name }}
{{- with (index . 0).Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
The metadata of an object: (list $ "issuer" "component"), and optionally (dict "labels" … "annotations" …), or
"as" with the whole name.
*/}}
{{- define "shortmint.metadata" -}}
{{- $root := index . 0 }}{{ $more := dict }}
{{- if gt (len .) 3 }}{{ $more = index . 3 }}{{ end -}}
name: {{ $more.as | default (include "shortmint.name" .) }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "shortmint.podLabels" . | nindent 2 }}
  app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ $root.Release.Service }}
  helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
  {{- with $more.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge dict ($more.annotations | default dict) $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* (list $ image) */}}
{{- define "shortmint.image" -}}
{{- $root := index . 0 }}{{ $image := index . 1 -}}
{{- with $root.Values.imageRegistry }}{{ . }}/{{ end }}
{{- $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/*
Prefixes of the paths that pods with the role `redirect` do not answer, also below the path of `publicUrl`: of the
API, its pages, and the APIs of `compat`. None of them can be the code of a link.
*/}}
{{- define "shortmint.apiPaths" -}}
{{- $paths := list "/rest" "/.well-known" "/manage" "/cluster" "/_pages" }}
{{- /* A prefix of Kubernetes is whole segments, and `/v4` can be a code. */}}
{{- $bitly := list "/v4/shorten" "/v4/expand" "/v4/bitlinks" "/v4/groups" "/v4/user" }}
{{- $facades := dict "yourls" (list "/yourls-api.php") "kutt" (list "/api/v2") "bitly" $bitly }}
{{- range .Values.compat }}{{ $paths = concat $paths (get $facades .) }}{{ end }}
{{- range $below := list "" (urlParse .Values.publicUrl).path | uniq }}
{{- range $paths }}
- {{ $below }}{{ . }}
{{- end }}
{{- end }}
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
{{- $endpoints := .Values.etcd.endpoints }}{{ $name := include "shortmint.name" (list . "etcd") }}
{{- if .Values.bundled.enabled }}
{{- range until 3 }}{{ $endpoints = append $endpoints (printf "https://%s-%d.%s:2379" $name . $name) }}{{ end }}
{{- end }}
{{- join "," $endpoints }}
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

{{/* The families of a Service. */}}
{{- define "shortmint.ipFamilies" -}}
{{- with .Values.ipFamilyPolicy -}}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .Values.ipFamilies }}
ipFamilies:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The workloads that serve visitors, by name, with their settings. Those of `redirect` add to those of `resolver`. */}}
{{- define "shortmint.resolvers" -}}
{{- $own := list "role" "grpc" "service" "extraEnv" "extraVolumes" "extraVolumeMounts" }}
{{- $all := dict "resolver" .Values.resolver }}
{{- if .Values.redirect.enabled }}
{{- $inherited := deepCopy .Values.resolver }}
{{- range $own }}{{ $inherited = omit $inherited . }}{{ end }}
{{- $_ := set $all "redirect" (mergeOverwrite $inherited (deepCopy .Values.redirect)) }}
{{- end }}
{{- toJson $all }}
{{- end }}

{{/* The kind of a workload of resolvers, by its settings. */}}
{{- define "shortmint.resolverKind" -}}
{{ ternary "StatefulSet" "Deployment" .spoolVolume.enabled }}
{{- end }}

{{/* The port of the public Services. */}}
{{- define "shortmint.publicPort" -}}
{{ ternary "https" "http" .Values.publicTls.enabled }}
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
