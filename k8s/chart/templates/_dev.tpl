{{/* The first part of a StatefulSet of `dev`, up to its containers: (list $ "etcd"). */}}
{{- define "shortmint.devStatefulSet" -}}
{{- $root := index . 0 }}{{ $name := index . 1 -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ include "shortmint.name" . }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "shortmint.labels" (list $root $name $name) | nindent 4 }}
spec:
  replicas: 1
  serviceName: {{ include "shortmint.name" . }}
  selector:
    matchLabels:
      {{- include "shortmint.selectorLabels" . | nindent 6 }}
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes:
          - ReadWriteOnce
        resources:
          requests:
            storage: {{ (index $root.Values.dev $name).storage }}
  template:
    metadata:
      labels:
        {{- include "shortmint.podLabels" (list $root $name $name) | nindent 8 }}
    spec:
      serviceAccountName: {{ include "shortmint.name" . }}
      automountServiceAccountToken: false
      # Otherwise Services set variables such as ETCD_PORT, which etcd takes for settings.
      enableServiceLinks: false
      {{- with include "shortmint.imagePullSecrets" $root | trim }}
      {{- . | nindent 6 }}
      {{- end }}
      securityContext:
        {{- include "shortmint.podSecurity" $root | nindent 8 }}
{{- end }}
