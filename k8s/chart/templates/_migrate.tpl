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

{{/* The spec of the migration Job. Its hash is part of the Job's name. */}}
{{- define "shortmint.migrateSpec" -}}
# Room for a Postgres that starts at the same time.
backoffLimit: 6
# A migration is never cut off by a clock, so there is no activeDeadlineSeconds.
{{- if not (kindIs "invalid" .Values.migrate.ttlSecondsAfterFinished) }}
ttlSecondsAfterFinished: {{ .Values.migrate.ttlSecondsAfterFinished }}
{{- end }}
template:
  metadata:
    {{- include "shortmint.podMetadata" (list . "resolver-migrate" "migrate" .Values.migrate dict) | nindent 4 }}
  spec:
    # A new pod for each try keeps the log of the failed one.
    restartPolicy: Never
    {{- include "shortmint.podSpec" (list . "resolver-migrate" .Values.migrate list) | nindent 4 }}
    containers:
      - name: migrate
        image: {{ include "shortmint.image" (list . .Values.resolver.image) }}
        imagePullPolicy: {{ .Values.imagePullPolicy }}
        args:
          - migrate
          {{- range .Values.migrate.extraArgs }}
          - {{ . | quote }}
          {{- end }}
        env:
          - name: RESOLVER_DATABASE
            valueFrom:
              secretKeyRef:
                name: {{ .Values.secret.name }}
                key: {{ .Values.secret.keys.migrateDatabaseUrl }}
          {{- if not .Values.tls.enabled }}
          - name: RESOLVER_INSECURE
            value: "true"
          {{- end }}
          {{- with .Values.database.serveRole }}
          # Gets what `serve` needs, so that the daemons do not own the tables.
          - name: RESOLVER_SERVE_ROLE
            value: {{ . | quote }}
          {{- end }}
          {{- with .Values.database.redirectRole }}
          - name: RESOLVER_REDIRECT_ROLE
            value: {{ . | quote }}
          {{- end }}
          {{- with .Values.migrate.extraEnv }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
        resources:
          {{- toYaml .Values.migrate.resources | nindent 10 }}
        {{- include "shortmint.containerSecurity" . | nindent 8 }}
        volumeMounts:
          - name: database
            mountPath: /etc/database
            readOnly: true
          {{- if .Values.tls.enabled }}
          - name: authorities
            mountPath: /etc/authorities
            readOnly: true
          {{- end }}
    volumes:
      - name: database
        secret:
          secretName: {{ .Values.secret.name }}
          items:
            - key: {{ .Values.secret.keys.migratePgpass }}
              path: pgpass
          defaultMode: 0440
          optional: true
      {{- if .Values.tls.enabled }}
      - name: authorities
        configMap:
          name: {{ .Values.tls.authorities }}
      {{- end }}
{{- end }}
