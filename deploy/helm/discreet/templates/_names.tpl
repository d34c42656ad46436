{{- define "discreet.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* 52 characters leave room for suffixes such as -valkey-0. */ -}}
{{- define "discreet.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "discreet.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "discreet.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "discreet.commonLabels" -}}
helm.sh/chart: {{ include "discreet.chart" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: discreet
{{- end -}}

{{- define "discreet.selector" -}}
app.kubernetes.io/name: {{ include "discreet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "discreet.labels" -}}
{{ include "discreet.selector" . }}
{{ include "discreet.commonLabels" . }}
{{- end -}}

{{- define "discreet.beginSelector" -}}
app.kubernetes.io/name: {{ include "discreet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: begin
{{- end }}

{{- define "discreet.valkeySelector" -}}
app.kubernetes.io/name: {{ include "discreet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: store
{{- end -}}

{{- define "discreet.valkeyLabels" -}}
{{ include "discreet.valkeySelector" . }}
{{ include "discreet.commonLabels" . }}
{{- end -}}

{{- define "discreet.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "discreet.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "discreet.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "discreet.valkeyImage" -}}
{{- with .Values.valkey.image -}}
{{ .repository }}:{{ .tag }}{{ with .digest }}@{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{- /* "yes" if the chart brings the store itself; nothing otherwise. */ -}}
{{- define "discreet.ownStore" -}}
{{- if and .Values.store.url .Values.store.existingSecret -}}
{{- fail "store: give either url or existingSecret, not both" -}}
{{- end -}}
{{- if not (or .Values.store.url .Values.store.existingSecret) -}}yes{{- end -}}
{{- end -}}

{{- define "discreet.keysSecret" -}}
{{- default (printf "%s-keys" (include "discreet.fullname" .)) .Values.keys.existingSecret -}}
{{- end -}}

{{- define "discreet.metricsSecret" -}}
{{- default (printf "%s-metrics" (include "discreet.fullname" .)) .Values.metrics.existingSecret -}}
{{- end -}}

{{- define "discreet.valkeySecret" -}}
{{- default (printf "%s-valkey" (include "discreet.fullname" .)) .Values.valkey.existingSecret -}}
{{- end -}}

{{- /* The Secret with the certificate of the chart's own Valkey; nothing if it speaks no TLS. */ -}}
{{- define "discreet.valkeyTlsSecret" -}}
{{- if and (include "discreet.ownStore" .) .Values.valkey.tls.enabled -}}
{{- default (printf "%s-valkey-tls" (include "discreet.fullname" .)) .Values.valkey.tls.existingSecret -}}
{{- end -}}
{{- end -}}

{{- /* The Secret that holds `store-url`; nothing if the URL stands in the values. */ -}}
{{- define "discreet.storeSecret" -}}
{{- if include "discreet.ownStore" . -}}
{{- include "discreet.valkeySecret" . -}}
{{- else -}}
{{- .Values.store.existingSecret -}}
{{- end -}}
{{- end -}}

{{- /* What Pod Security "restricted" asks of a container. */ -}}
{{- define "discreet.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "discreet.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}
