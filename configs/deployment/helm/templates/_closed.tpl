{{- /* What all pods share: names, and what closes a pod and a container. */ -}}

{{- /* Arguments: the root context, and the side (coordinator or hospital). */ -}}
{{- define "caucus.image" -}}
{{- $image := (index . 0).Values.image -}}
{{ index $image (index . 1) }}:{{ $image.tag | default (index . 0).Chart.AppVersion }}
{{- end }}

{{- /* Arguments: the root context, and the part (coordinator, service or relay). */ -}}
{{- define "caucus.labels" -}}
app.kubernetes.io/name: caucus
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- /* Arguments: user and group. No token of the cluster's API, and no names of other services. */ -}}
{{- define "caucus.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: 60
securityContext:
  runAsNonRoot: true
  runAsUser: {{ index . 0 }}
  runAsGroup: {{ index . 1 }}
  fsGroup: {{ index . 1 }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "caucus.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- /* Arguments: words of a health check. A process that ends is started again inside; what hangs for 5 minutes, here. */ -}}
{{- define "caucus.probes" -}}
startupProbe:
  exec: {command: {{ toJson . }}}
  timeoutSeconds: 15
  periodSeconds: 10
  failureThreshold: 30
readinessProbe:
  exec: {command: {{ toJson . }}}
  timeoutSeconds: 15
  periodSeconds: 30
  failureThreshold: 2
livenessProbe:
  exec: {command: {{ toJson . }}}
  timeoutSeconds: 15
  periodSeconds: 30
  failureThreshold: 10
{{- end }}

{{- /* Arguments: memory limit. */ -}}
{{- define "caucus.resources" -}}
resources:
  requests: {cpu: 500m, memory: {{ . }}}
  limits: {memory: {{ . }}}
{{- end }}

{{- define "caucus.tmp" -}}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 256Mi}
{{- end }}
