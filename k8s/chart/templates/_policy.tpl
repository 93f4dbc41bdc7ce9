{{/* The first part of a NetworkPolicy of a workload: (list $ "issuer" "component"). */}}
{{- define "shortmint.policy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "shortmint.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "shortmint.selectorLabels" . | nindent 6 }}
  policyTypes:
    - Ingress
    - Egress
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

{{/* Egress to Postgres, whether it is bundled or elsewhere. */}}
{{- define "shortmint.policyPostgres" -}}
{{- if .Values.bundled.enabled -}}
{{ include "shortmint.allowPods" (list . "to" 5432 "postgres") }}
{{- else -}}
{{ include "shortmint.allow" (list "to" .Values.networkPolicy.postgres.to .Values.networkPolicy.postgres.port) }}
{{- end }}
{{- end }}

{{/* Egress to the name servers, on the same ports by UDP and TCP. */}}
{{- define "shortmint.policyDns" -}}
{{- $rule := list "to" .Values.networkPolicy.dns.to }}
{{- range .Values.networkPolicy.dns.ports }}{{ $rule = concat $rule (list (toString .) (int .)) }}{{ end -}}
# Names.
{{ include "shortmint.allow" $rule }}
{{- end }}

{{/* Egress of daemons: names, and traces if they are sent. */}}
{{- define "shortmint.policyDaemon" -}}
{{ include "shortmint.policyDns" . }}
{{- if .Values.telemetry.otlp.endpoint }}
# Traces.
{{ include "shortmint.allow" (list "to" .Values.networkPolicy.otlp.to .Values.networkPolicy.otlp.port) }}
{{- end }}
{{- end }}
