{{- define "inlet.name" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- /* Labels that select all pods of the release. */ -}}
{{- define "inlet.selector" -}}
app.kubernetes.io/name: inlet
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "inlet.labels" -}}
{{ include "inlet.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}
