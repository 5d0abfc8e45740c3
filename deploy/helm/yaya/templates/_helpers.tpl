{{- define "yaya.selector" -}}
app.kubernetes.io/name: yaya
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- define "yaya.labels" -}}
{{ include "yaya.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}
{{- define "yaya.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- /* What a container may do: nothing that it does not need. */ -}}
{{- define "yaya.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
{{- /* yaya cluster init, for the notes. */ -}}
{{- define "yaya.init" -}}
yaya cluster init --name {{ .Release.Name }}-0 --nats {{ .Values.nats.url }} --replicas {{ .Values.nats.replicas }}{{ if .Values.nats.secret }} --creds /etc/nats/creds{{ end }}{{ if .Values.nats.ca }} --ca /etc/nats/ca.crt{{ end }}
{{- end -}}
