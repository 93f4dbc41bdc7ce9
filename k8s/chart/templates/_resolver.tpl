{{/*
The workload of resolvers and that of redirects: (list $ "resolver" settings). The two differ in the role, in
the right to take numbers, and in sizes. With `spoolVolume` it is a StatefulSet: only its pods come back to their
own volume.
*/}}
{{- define "shortmint.resolverWorkload" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}{{ $settings := index . 2 }}
{{- $kind := include "shortmint.resolverKind" $settings }}{{ $keepsSpool := $settings.spoolVolume.enabled }}
{{- $values := $root.Values }}{{ $takesNumbers := eq $name "resolver" }}
{{- $config := include "shortmint.configName" $root }}{{ $keys := $values.secret.keys }}
{{- /* Blocks of the spool, and room for files that are being replaced. */}}
{{- $spoolSize := printf "%dMi" (add $settings.spoolMiB 256) -}}
apiVersion: apps/v1
kind: {{ $kind }}
metadata:
  {{- include "shortmint.metadata" (list $root $name $name) | nindent 2 }}
spec:
  {{- if not $settings.autoscaling.enabled }}
  replicas: {{ $settings.replicas }}
  {{- end }}
  # Time for every node to learn of the new pod, and for its cache to warm, before an old one goes.
  minReadySeconds: 10
  {{- if $keepsSpool }}
  serviceName: {{ include "shortmint.name" (list $root $name) }}
  # Pods do not wait for each other, so a pod of a lost node holds up none. Updates go one at a time.
  podManagementPolicy: Parallel
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes:
          - ReadWriteOnce
        {{- with $settings.spoolVolume.storageClassName }}
        storageClassName: {{ . }}
        {{- end }}
        resources:
          requests:
            storage: {{ $spoolSize }}
  {{- else }}
  # Longer than RESOLVER_START_DEADLINE: a new pod may wait for the migration of the schema.
  {{- $units := dict "ms" 1 "s" 1 "m" 60 "h" 3600 "d" 86400 }}
  {{- $unit := get $units (regexFind "[a-z]+$" $settings.startDeadline) }}
  progressDeadlineSeconds: {{ add 300 (mul $unit (regexFind "^[0-9]+" $settings.startDeadline | int)) }}
  strategy:
    type: RollingUpdate
    # The new pod serves before an old one ends, so an update costs no capacity.
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  {{- end }}
  selector:
    matchLabels:
      {{- include "shortmint.selectorLabels" (list $root $name) | nindent 6 }}
  template:
    metadata:
      {{- $scrape := include "shortmint.scrapeAnnotations" (list $root 9090) | fromYaml }}
      {{- include "shortmint.podMetadata" (list $root $name $name $settings $scrape) | nindent 6 }}
    spec:
      {{- $tolerations := include "shortmint.nodeLoss" $root | fromYamlArray }}
      {{- include "shortmint.podSpec" (list $root $name $settings $tolerations) | nindent 6 }}
      # The drain delay, 40 seconds at most for requests, creates, the last visits and the return of numbers, each with
      # a limit of its own, and some to spare: past it comes SIGKILL.
      terminationGracePeriodSeconds: {{ add $settings.drainDelaySeconds 55 }}
      {{- include "shortmint.topologySpread" (list $root $name $settings (not $keepsSpool)) | nindent 6 }}
      containers:
        - name: {{ $name }}
          image: {{ include "shortmint.image" (list $root $values.resolver.image) }}
          imagePullPolicy: {{ $values.imagePullPolicy }}
          args:
            - serve
          # Relative paths end in the one writable directory.
          workingDir: /var/lib/shortmint
          env:
            {{- if $takesNumbers }}
            # Not read by the daemon: only a variable can stand in the next one's value, so it comes first.
            - name: POD_NAME
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            # A container that restarts keeps the pod's name, and with it its blocks. A pod that ends returns
            # them. All pods share the certificate `resolver`, which is for the holders below its name.
            - name: RESOLVER_HOLDER_ID
              value: resolver.$(POD_NAME)
            {{- if $values.tls.enabled }}
            - name: RESOLVER_ISSUER_TLS
              value: ca=/etc/authorities/shortmint.crt,cert=/etc/resolver-tls/tls.crt,key=/etc/resolver-tls/tls.key
            {{- end }}
            - name: RESOLVER_ISSUER
              valueFrom:
                configMapKeyRef:
                  name: {{ $config }}
                  key: issuer-urls
            {{- else }}
            # Visitors only: the daemon asks for no blocks, so it gets neither the issuers' addresses nor a
            # certificate.
            - name: RESOLVER_ROLE
              value: redirect
            # The default contains the holder id, which this role does not have.
            - name: RESOLVER_VISITS_SPOOL
              value: /var/lib/shortmint/visits
            {{- end }}
            # The defaults listen on the loopback only.
            - name: RESOLVER_LISTEN
              value: "{{ $values.listenAddress }}:8080"
            - name: RESOLVER_ADMIN_LISTEN
              value: "{{ $values.listenAddress }}:9090"
            - name: RESOLVER_LOG_FORMAT
              value: {{ $values.logFormat }}
            - name: RESOLVER_PUBLIC_URL
              valueFrom:
                configMapKeyRef:
                  name: {{ $config }}
                  key: public-url
            - name: RESOLVER_TRUSTED_PROXIES
              valueFrom:
                configMapKeyRef:
                  name: {{ $config }}
                  key: trusted-proxies
            {{- with $values.compat }}
            # Also for the role `redirect`, which would otherwise take their paths for links.
            - name: RESOLVER_COMPAT
              value: {{ join "," . }}
            {{- end }}
            - name: RESOLVER_DATABASE
              valueFrom:
                secretKeyRef:
                  name: {{ $values.secret.name }}
                  key: {{ ternary $keys.databaseUrl $keys.redirectDatabaseUrl $takesNumbers }}
            # Waits for Postgres and for the migration, which one apply creates at the same time. Not ready
            # until then.
            - name: RESOLVER_START_DEADLINE
              value: {{ $settings.startDeadline }}
            - name: RESOLVER_CODE_KEY_FILE
              value: /etc/shortmint/code.key
            {{- if $takesNumbers }}
            # Only the very first start reads it. Without it that start prints a new admin key, into a log
            # that is kept.
            - name: RESOLVER_INITIAL_API_KEY
              valueFrom:
                secretKeyRef:
                  name: {{ $values.secret.name }}
                  key: {{ $keys.initialApiKey }}
                  optional: true
            {{- end }}
            # Kubernetes sends SIGTERM at the moment it *begins* to take the pod out of the Service. For this
            # long the listener goes on accepting what nodes that have not heard of it still send. Stands
            # here, not in the ConfigMap, because terminationGracePeriodSeconds must grow with it.
            - name: RESOLVER_DRAIN_DELAY
              value: {{ $settings.drainDelaySeconds }}s
            # The spool is smaller than its volume, above whose size the pod is evicted: a full spool drops visits,
            # and serves. Of the connections of all pods together, Postgres has to admit them: see
            # `database.maxConnections`.
            - name: RESOLVER_LIMIT
              value: {{ include "shortmint.limits" $settings }}
            {{- if not $values.tls.enabled }}
            - name: RESOLVER_INSECURE
              value: "true"
            {{- end }}
            {{- if $values.publicTls.enabled }}
            - name: RESOLVER_TLS
              value: cert=/etc/public-tls/tls.crt,key=/etc/public-tls/tls.key
            {{- end }}
            {{- if $settings.accessLog }}
            - name: RESOLVER_ACCESS_LOG
              value: {{ $settings.accessLog | quote }}
            {{- end }}
            {{- if and $takesNumbers $settings.grpc.enabled }}
            - name: RESOLVER_GRPC_LISTEN
              value: "{{ $values.listenAddress }}:8081"
            {{- end }}
            {{- if and $takesNumbers (ne $settings.role "all") }}
            - name: RESOLVER_ROLE
              value: {{ $settings.role }}
            {{- end }}
            {{- with include "shortmint.otlpEnv" (list $root "RESOLVER") | trim }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with $settings.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            - name: http
              containerPort: 8080
            {{- if and $takesNumbers $settings.grpc.enabled }}
            - name: grpc
              containerPort: 8081
            {{- end }}
            - name: admin
              containerPort: 9090
          # Until this has passed once the other two do not run. It asks for life only: a resolver that cannot
          # reach Postgres at start ends with 69 past its own deadline, which says more in the log than a
          # kill.
          startupProbe:
            httpGet:
              path: /livez
              port: admin
            periodSeconds: 1
            timeoutSeconds: 2
            failureThreshold: 60
          # Must stay independent of Postgres, issuer and etcd: a restart mends none of them and empties the
          # cache.
          livenessProbe:
            httpGet:
              path: /livez
              port: admin
            periodSeconds: 10
            timeoutSeconds: 2
            failureThreshold: 3
          # Ready means "started, and not draining". At the start, pods that create links wait for numbers, so
          # that a rollout in an outage keeps those that have some. If it followed Postgres, an outage would take
          # every pod out of the Service at once, and with them the redirects that the caches still answer.
          readinessProbe:
            httpGet:
              path: /readyz
              port: admin
            periodSeconds: 2
            timeoutSeconds: 2
            failureThreshold: 2
          # The CPU limit is also the number of listener threads: without it, there is one per core of the
          # node.
          resources:
            {{- /* The request has room for a full spool: a node that is short of disk evicts the pods above theirs first. */}}
            {{- $spool := ternary 0 (int $settings.spoolMiB) $keepsSpool }}
            {{- $request := dict "ephemeral-storage" (printf "%dMi" (add $spool 256)) }}
            {{- $limit := dict "ephemeral-storage" (printf "%dMi" (add $spool 1280)) }}
            {{- $disk := dict "requests" $request "limits" $limit }}
            {{- toYaml (mergeOverwrite $disk (deepCopy $settings.resources)) | nindent 12 }}
          {{- include "shortmint.containerSecurity" $root | nindent 10 }}
          volumeMounts:
            - name: code-key
              mountPath: /etc/shortmint
              readOnly: true
            - name: database
              mountPath: /etc/database
              readOnly: true
            - name: data
              mountPath: /var/lib/shortmint
            {{- if $values.tls.enabled }}
            # Never with subPath: such mounts do not see renewals.
            - name: authorities
              mountPath: /etc/authorities
              readOnly: true
            {{- if $takesNumbers }}
            - name: tls
              mountPath: /etc/resolver-tls
              readOnly: true
            {{- end }}
            {{- end }}
            {{- if $values.publicTls.enabled }}
            - name: public-tls
              mountPath: /etc/public-tls
              readOnly: true
            {{- end }}
            {{- with $settings.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: code-key
          secret:
            secretName: {{ $values.secret.name }}
            # The other keys are not needed as files.
            items:
              - key: {{ $keys.codeKey }}
                path: code.key
            defaultMode: 0440
        # The password file, if the Secret has one: `passfile=/etc/database/pgpass` in the URL.
        - name: database
          secret:
            secretName: {{ $values.secret.name }}
            items:
              - key: {{ ternary $keys.pgpass $keys.redirectPgpass $takesNumbers }}
                path: pgpass
            defaultMode: 0440
            optional: true
        {{- if not $keepsSpool }}
        # Outlives a crash of the container, not the pod: see `spoolVolume`.
        - name: data
          emptyDir:
            sizeLimit: {{ $spoolSize }}
        {{- end }}
        {{- if $values.tls.enabled }}
        # Not `ca.crt` of the Secrets: that changes together with a certificate, and an authority has to
        # change before.
        - name: authorities
          configMap:
            name: {{ $values.tls.authorities }}
        {{- if $takesNumbers }}
        - name: tls
          secret:
            secretName: {{ $values.tls.resolverSecret }}
            defaultMode: 0440
        {{- end }}
        {{- end }}
        {{- if $values.publicTls.enabled }}
        - name: public-tls
          secret:
            secretName: {{ $values.publicTls.secret }}
            defaultMode: 0440
        {{- end }}
        {{- with $settings.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}

{{/* The value of RESOLVER_LIMIT. */}}
{{- define "shortmint.limits" -}}
database-connections={{ int .databaseConnections }},visits-spool-mib={{ int .spoolMiB }}
{{- range $name, $count := .limits }},{{ $name }}={{ int64 $count }}{{ end -}}
{{- end }}
