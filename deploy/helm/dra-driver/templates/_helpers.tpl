{{/*
The one name of the node plugin: DaemonSet, ServiceAccount, ClusterRole. The admission policy names the same account,
so nothing else may spell it out.
*/}}
{{- define "dra-driver.name" -}}
dra-kubeletplugin
{{- end }}

{{- define "dra-driver.selectorLabels" -}}
app.kubernetes.io/name: {{ include "dra-driver.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "dra-driver.labels" -}}
{{ include "dra-driver.selectorLabels" . }}
{{ include "dra-driver.releaseLabels" . }}
{{- end }}

{{- define "dra-driver.releaseLabels" -}}
app.kubernetes.io/part-of: dra-driver
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The one name of the controller: Deployment, ServiceAccount, roles, Lease, and the account in its policies. */}}
{{- define "dra-driver.controllerName" -}}
dra-controller
{{- end }}

{{- define "dra-driver.controllerSelectorLabels" -}}
app.kubernetes.io/name: {{ include "dra-driver.controllerName" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "dra-driver.controllerLabels" -}}
{{ include "dra-driver.controllerSelectorLabels" . }}
{{ include "dra-driver.releaseLabels" . }}
{{- end }}

{{/*
What selects the devices of a class: `accelerator`, `gpu`, `npu` or `partition`, given as `(dict "like" … "driver" …)`.
`type` and `partition` are there on every device of the driver, so these selectors raise no error on any device;
an attribute that may be missing needs `.?name.orValue(…)`. Devices of other drivers end at the first comparison.
*/}}
{{- define "dra-driver.classSelector" -}}
{{- $attributes := printf "device.attributes[%q]" .driver -}}
{{- $conditions := dict
  "accelerator" (printf "%s.partition == false" $attributes)
  "gpu" (printf "%s.type == \"gpu\" && %s.partition == false" $attributes $attributes)
  "npu" (printf "%s.type == \"npu\" && %s.partition == false" $attributes $attributes)
  "partition" (printf "%s.partition == true" $attributes)
-}}
device.driver == {{ .driver | quote }} && {{ get $conditions .like }}
{{- end }}

{{- define "dra-driver.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "dra-driver.mpsImage" -}}
{{ .Values.mps.image | default (include "dra-driver.image" .) }}
{{- end }}

{{/* The folder with the plugin's own sockets and state; other drivers' folders stay out of its reach. */}}
{{- define "dra-driver.pluginDir" -}}
{{ .Values.kubeletDir }}/plugins/{{ .Values.driverName }}
{{- end }}

{{/* The account of MPS daemons, which may do nothing: it has the secrets to pull their image. */}}
{{- define "dra-driver.mpsName" -}}
dra-mps-daemon
{{- end }}

{{/* The folder with the memory that MPS daemons and their clients share. */}}
{{- define "dra-driver.mpsMemoryDir" -}}
/dev/shm/{{ .Values.driverName }}-mps
{{- end }}

{{/* Whether the ConfigMap of the simulated backend is needed. */}}
{{- define "dra-driver.simulatedFiles" -}}
{{- if and .Values.simulated.enabled (or .Values.simulated.customProfile .Values.simulated.overrides) }}true{{ end }}
{{- end }}

{{- define "dra-driver.simulatedConfigMap" -}}
{{ include "dra-driver.name" . }}-simulated
{{- end }}
