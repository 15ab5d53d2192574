
# Names of interfaces, network namespaces and containers; and `tscap -i ...`, which is
# `tscap capture -i ...`.
function __tscap_interfaces
    echo any
    test -d /sys/class/net; and command ls /sys/class/net
end

function __tscap_namespaces
    test -d /run/netns; and command ls /run/netns
end

function __tscap_containers
    for program in docker podman
        type -q $program; and timeout 2 $program ps --format '{{.Names}}' 2>/dev/null
    end
end

function __tscap_is_capture
    set -l words (commandline -opc) (commandline -ct)
    set -q words[2]; and string match -q -- '-?*' $words[2]
end

