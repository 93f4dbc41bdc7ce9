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
    labels:
      {{- include "shortmint.podLabels" (list . "resolver-migrate" "migrate") | nindent 6 }}
  spec:
    # A new pod for each try keeps the log of the failed one.
    restartPolicy: Never
    serviceAccountName: {{ include "shortmint.name" (list . "resolver-migrate") }}
    automountServiceAccountToken: false
    enableServiceLinks: false
    {{- with include "shortmint.imagePullSecrets" . | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    securityContext:
      {{- include "shortmint.podSecurity" . | nindent 6 }}
    {{- with .Values.migrate.nodeSelector }}
    nodeSelector:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.migrate.tolerations }}
    tolerations:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    containers:
      - name: migrate
        image: {{ include "shortmint.image" (list . .Values.resolver.image) }}
        imagePullPolicy: {{ .Values.imagePullPolicy }}
        args:
          - migrate
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
        securityContext:
          {{- include "shortmint.containerSecurity" . | nindent 10 }}
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
