{{- define "longhaul.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end -}}
{{- end -}}

{{- define "longhaul.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "longhaul.labels" -}}
{{ include "longhaul.selector" . }}
app.kubernetes.io/component: {{ include "longhaul.role" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "longhaul.role" -}}
{{- .Values.longhaul.role | default "edge" -}}
{{- end -}}

{{- define "longhaul.image" -}}
{{- $suffix := ternary "-host" "" .Values.hostNetwork -}}
{{- .Values.image.repository }}:{{ .Values.image.tag | default (printf "%s%s" .Chart.AppVersion $suffix) -}}
{{- end -}}

{{/* The port of `ADDRESS:PORT` or of a list of them; nothing where it is off. */}}
{{- define "longhaul.port" -}}
{{- $socket := . -}}
{{- if kindIs "slice" $socket }}{{ $socket = first $socket }}{{ end -}}
{{- if and $socket (ne (toString $socket) "off") }}{{ last (splitList ":" (toString $socket)) }}{{ end -}}
{{- end -}}

{{/* A time of longhaul.yaml in whole seconds, rounded up. */}}
{{- define "longhaul.seconds" -}}
{{- $text := toString . -}}
{{- if not (regexMatch "^[0-9]+(\\.[0-9]+)?(ms|s|m|h)$" $text) -}}
{{- fail (printf "longhaul.drain: %q is no time: write a number with ms, s, m or h, for example 30s" $text) -}}
{{- end -}}
{{- $unit := regexFind "(ms|s|m|h)$" $text -}}
{{- $number := trimSuffix $unit $text | float64 -}}
{{- ceil (mulf $number (get (dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0) $unit)) | int -}}
{{- end -}}

{{/* `listen.health`'s port, which the probes need. */}}
{{- define "longhaul.health" -}}
{{- $port := include "longhaul.port" (.Values.longhaul.listen).health -}}
{{- if not $port -}}
{{- fail "longhaul.listen.health is off: the kubelet's probes need it. Write longhaul: { listen: { health: 0.0.0.0:9902 } }" -}}
{{- end -}}
{{- if hasPrefix "127." (toString .Values.longhaul.listen.health) -}}
{{- fail (printf "longhaul.listen.health is %s: the kubelet cannot reach loopback. Write 0.0.0.0:9902" .Values.longhaul.listen.health) -}}
{{- end -}}
{{- $port -}}
{{- end -}}

{{/* The ports of clients and remotes, as a list of { name, port, protocol } below `ports`. */}}
{{- define "longhaul.ports" -}}
{{- $listen := .Values.longhaul.listen | default dict -}}
{{- $split := .Values.longhaul.split | default dict -}}
{{- $ports := list -}}
{{- if ne (include "longhaul.role" .) "ground" -}}
{{- $http := include "longhaul.port" (hasKey $listen "http" | ternary $listen.http "0.0.0.0:80") -}}
{{- $tls := include "longhaul.port" (hasKey $listen "tls" | ternary $listen.tls "0.0.0.0:443") -}}
{{- $dns := include "longhaul.port" (hasKey $listen "dns" | ternary $listen.dns "0.0.0.0:53") -}}
{{- with $http }}{{ $ports = append $ports (dict "name" "http" "port" (int .) "protocol" "TCP") }}{{ end -}}
{{- if $tls -}}
{{- $ports = append $ports (dict "name" "tls" "port" (int $tls) "protocol" "TCP") -}}
{{- if (.Values.longhaul.tls).terminate }}{{ $ports = append $ports (dict "name" "quic" "port" (int $tls) "protocol" "UDP") }}{{ end -}}
{{- end -}}
{{- if $dns -}}
{{- $ports = append $ports (dict "name" "dns-udp" "port" (int $dns) "protocol" "UDP") -}}
{{- $ports = append $ports (dict "name" "dns-tcp" "port" (int $dns) "protocol" "TCP") -}}
{{- end -}}
{{- $proxy := .Values.longhaul.proxy | default dict -}}
{{- $encrypted := toString ((.Values.longhaul.dns | default dict).encrypted | default "auto") -}}
{{- $named := and $proxy.secure_names (.Values.longhaul.tls).terminate -}}
{{- if and $named (eq $dns "53") (eq (include "longhaul.role" .) "edge") (not (has $encrypted (list "off" "false"))) -}}
{{- $ports = append $ports (dict "name" "dns-tls" "port" 853 "protocol" "TCP") -}}
{{- $ports = append $ports (dict "name" "dns-quic" "port" 853 "protocol" "UDP") -}}
{{- $ports = append $ports (dict "name" "dns-https" "port" 8443 "protocol" "TCP") -}}
{{- end -}}
{{- else -}}
{{- $pair := include "longhaul.port" (hasKey $split "listen" | ternary $split.listen "0.0.0.0:8443") | int -}}
{{- $ports = append $ports (dict "name" "pair" "port" $pair "protocol" "TCP") -}}
{{- if eq ($split.transport | default "h2") "h3" }}{{ $ports = append $ports (dict "name" "pair-quic" "port" $pair "protocol" "UDP") }}{{ end -}}
{{- end -}}
{{- toYaml (dict "ports" $ports) -}}
{{- end -}}

{{/* A short, stable name of a list's ConfigMap: Kubernetes' names take no underscores and capitals. */}}
{{- define "longhaul.listName" -}}
{{- printf "%s-list-%s" (include "longhaul.name" .root) (regexReplaceAll "[^a-z0-9]+" (lower .file) "-" | trimAll "-") -}}
{{- end -}}

{{- define "longhaul.secret" -}}
{{- .certificate.secret | default (printf "%s-%s" (include "longhaul.name" .root) .folder) -}}
{{- end -}}
