{{/* The spec of a claim for a volume: a dict with `storage` and `storageClassName`. */}}
{{- define "shortmint.claim" -}}
accessModes:
  - ReadWriteOnce
{{- with .storageClassName }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .storage }}
{{- end }}

{{/* The first part of a bundled StatefulSet, up to its containers: (list $ "etcd" replicas annotations). */}}
{{- define "shortmint.bundledStatefulSet" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}{{ $settings := index $root.Values.bundled $name -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  {{- include "shortmint.metadata" (list $root $name $name) | nindent 2 }}
spec:
  replicas: {{ index . 2 }}
  serviceName: {{ include "shortmint.name" . }}
  # A quorum needs the other members at the same time. Updates still go one pod at a time.
  podManagementPolicy: Parallel
  selector:
    matchLabels:
      {{- include "shortmint.selectorLabels" . | nindent 6 }}
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        {{- include "shortmint.claim" $settings | nindent 8 }}
  template:
    metadata:
      {{- include "shortmint.podMetadata" (list $root $name $name $settings (index . 3)) | nindent 6 }}
    spec:
      {{- include "shortmint.podSpec" (list $root $name $settings list) | nindent 6 }}
      {{- include "shortmint.topologySpread" (list $root $name $settings false) | nindent 6 }}
{{- end }}

{{/* The Service of a bundled store: (list $ "etcd" port …). Headless, because each pod has a name of its own. */}}
{{- define "shortmint.bundledService" -}}
{{- $root := index . 0 }}{{ $name := index . 1 -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "shortmint.metadata" (list $root $name $name) | nindent 2 }}
spec:
  clusterIP: None
  # Members of etcd need each other's names before they are ready.
  publishNotReadyAddresses: true
  {{- include "shortmint.ipFamilies" $root | nindent 2 }}
  selector:
    {{- include "shortmint.selectorLabels" . | nindent 4 }}
  ports:
    {{- range slice . 2 }}
    - name: {{ .name }}
      port: {{ .port }}
      targetPort: {{ .name }}
    {{- end }}
{{- end }}
