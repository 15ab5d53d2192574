(( $+functions[_tscap_interfaces] )) ||
_tscap_interfaces() {
    local -a names; names=(any /sys/class/net/*(N:t))
    _describe -t interfaces 'interface' names
}
(( $+functions[_tscap_namespaces] )) ||
_tscap_namespaces() {
    local -a names; names=(/run/netns/*(N:t))
    _describe -t namespaces 'network namespace' names
}
(( $+functions[_tscap_containers] )) ||
_tscap_containers() {
    local -a names; local program
    for program in docker podman; do
        (( $+commands[$program] )) && names+=(${(f)"$(timeout 2 $program ps --format '{{.Names}}' 2>/dev/null)"})
    done
    _describe -t containers 'container' names
}
