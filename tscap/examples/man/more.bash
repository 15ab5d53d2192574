
# Behind what the options alone give: names of interfaces, network namespaces and containers;
# files where a command takes them; and `tscap -i ...`, which is `tscap capture -i ...`.

_tscap_interfaces() {
    echo any
    [ -d /sys/class/net ] && ls /sys/class/net
}

_tscap_namespaces() {
    ls /run/netns /var/run/netns 2>/dev/null | grep -v ':$' | sort -u
}

_tscap_containers() {
    local program
    for program in docker podman; do
        command -v "$program" >/dev/null && timeout 2 "$program" ps --format '{{.Names}}' 2>/dev/null
    done
}

# readline splits words at the colons of COMP_WORDBREAKS: those with no blank between are put
# together again.
_tscap_join_colons() {
    local line=$COMP_LINE joined=() cword=0 before= i word
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $i -gt 0 && $line != [[:blank:]]* && ($word == :* || $before == *:) ]]; then
            joined[${#joined[@]} - 1]+=$word
        else
            joined+=("$word")
        fi
        line=${line#"${line%%[![:blank:]]*}"}
        line=${line#"$word"}
        before=$word
        if [ "$i" -eq "$COMP_CWORD" ]; then
            cword=$((${#joined[@]} - 1))
        fi
    done
    COMP_WORDS=("${joined[@]}")
    COMP_CWORD=$cword
}

_tscap_more() {
    local kept=
    if [[ $COMP_WORDBREAKS == *:* ]]; then
        _tscap_join_colons
        # What stands up to the last colon is in the line already.
        kept=${COMP_WORDS[COMP_CWORD]}
        kept=${kept%"${kept##*:}"}
    fi
    _tscap_propose
    local result=$?
    COMPREPLY=("${COMPREPLY[@]#"$kept"}")
    return $result
}

_tscap_propose() {
    # What is written behind an = is a word of its own.
    local cur=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) names=
    if [ "$cur" = = ]; then
        cur=
    elif [ "${COMP_WORDS[at]}" = = ]; then
        at=$((at - 1))
    fi
    local option=${COMP_WORDS[at]}
    case $option in
        @INTERFACES@) names=$(_tscap_interfaces) ;;
        @NAMESPACES@) names=$(_tscap_namespaces) ;;
        @CONTAINERS@) names=$(_tscap_containers) ;;
    esac
    if [ -n "$names" ]; then
        COMPREPLY=($(compgen -W "$names" -- "$cur"))
        return 0
    fi
    if [[ ${COMP_WORDS[1]} == -?* && ${COMP_WORDS[1]} != -h && ${COMP_WORDS[1]} != -V ]]; then
        case $COMP_CWORD:$cur in
            1:--h* | 1:--v*) ;;
            *)
                COMP_WORDS=("${COMP_WORDS[0]}" capture "${COMP_WORDS[@]:1}")
                COMP_CWORD=$((COMP_CWORD + 1))
                ;;
        esac
    fi
    _tscap "${COMP_WORDS[0]}" "$cur" "$option"
    local result=$? found=() word
    # Names that stand for something are nothing to be written.
    for word in "${COMPREPLY[@]}"; do
        case $word in
            '<'* | '['*) ;;
            *) found+=("$word") ;;
        esac
    done
    COMPREPLY=("${found[@]}")
    if [[ ${#COMPREPLY[@]} -eq 0 && $COMP_CWORD -gt 1 && $cur != -* ]]; then
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$cur"))
    fi
    return $result
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _tscap_more -o nosort -o bashdefault -o default tscap
else
    complete -F _tscap_more -o bashdefault -o default tscap
fi
