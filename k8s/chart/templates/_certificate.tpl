{{/* A Certificate: (list $ (dict "name" … "secret" … "issuerRef" … "dnsNames" … "commonName" … "isPublic" true)). */}}
{{- define "shortmint.certificate" -}}
{{- $root := index . 0 }}{{ $certificate := index . 1 -}}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  {{- include "shortmint.metadata" (list $root $certificate.name "certificate") | nindent 2 }}
spec:
  secretName: {{ $certificate.secret }}
  issuerRef:
    {{- toYaml $certificate.issuerRef | nindent 4 }}
  {{- with $certificate.commonName }}
  commonName: {{ . | quote }}
  {{- end }}
  {{- with $certificate.dnsNames }}
  dnsNames:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  duration: {{ $root.Values.certManager.duration }}
  renewBefore: {{ $root.Values.certManager.renewBefore }}
  # The daemons read changed files again, so each renewal may bring a new key.
  privateKey:
    algorithm: ECDSA
    size: 256
    rotationPolicy: Always
  usages:
    - digital signature
    - server auth
    {{- if not $certificate.isPublic }}
    - client auth
    {{- end }}
{{- end }}
