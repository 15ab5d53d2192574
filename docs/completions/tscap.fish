# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_tscap_global_optspecs
    string join \n h/help V/version
end

function __fish_tscap_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_tscap_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_tscap_using_subcommand
    set -l cmd (__fish_tscap_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c tscap -n "__fish_tscap_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tscap -n "__fish_tscap_needs_command" -s V -l version -d 'Print version'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "capture" -d 'Capture frames into a pcapng file'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "clock" -d 'Watch the clock that converts TSC stamps'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "doctor" -d 'Examine whether this machine is fit for precise stamps'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "compare" -d 'Compare what a stamp costs on this machine: ktime, TAI, TSC'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "convert" -d 'Stamp a capture again, or keep only the packets that match a filter'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "counters" -d 'Measure what the counters of this machine are like: the TSC, HPET, ACPI, the kernel\'s clocks'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "delay" -d 'Measure how long packets take from one interface to another'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "gen" -d 'Send test frames that carry their own send stamps'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "loss" -d 'Measure where a capture loses frames, and predict it'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "merge" -d 'Join captures by time into one pcapng'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "qos" -d 'Tell rate, delay, jitter, loss and order of each flow'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "report" -d 'Print a saved comparison, sweep of loss, measurement of delays or of flows, or log of the clock'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "stamp" -d 'Give other programs tscap\'s receive times'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "restore" -d 'Restore the settings that a killed capture or doctor --fix had changed'
complete -c tscap -n "__fish_tscap_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s i -l interface -d 'Interface to capture on, or any for all; may be given several times' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l netns -d 'Capture in this network namespace: a name of ip netns, a path, or the number of a process; may be given several times' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l container -d 'Capture in the network namespace of this container: its name, or its id or the beginning of that (Docker, Podman, containerd, CRI-O); may be given several times' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l pod -d 'Capture in the network namespace of this pod of Kubernetes on this node; may be given several times' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s w -l write -d 'File to write, or - for standard output; without it, a live view on a terminal' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s s -l snaplen -d 'Most bytes to capture of each frame; 0 for the default [default: 65428; without -w 64]' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s c -l count -d 'Stop after this many frames' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l duration -d 'Stop after this time: seconds, or with units (1m30s)' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s a -l autostop -d 'dumpcap\'s conditions to stop: duration:SECONDS is --duration, packets:COUNT is --count' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l metrics-file -d 'Write the counters to FILE every 10 s and at the end, in Prometheus\'s text format, for node_exporter\'s textfile collector: FILE must end in .prom' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l clock -d 'Clock to stamp frames with' -r -f -a "auto\t'The cheapest that works here: tsc by a kfunc, where the TSC is invariant, else ktime'
ktime\t'CLOCK_MONOTONIC, by bpf_ktime_get_ns'
tai\t'CLOCK_TAI, by bpf_ktime_get_tai_ns (kernel 6.1)'
tsc\t'The CPU\'s time-stamp counter: by a kfunc, of the kernel or of tscap\'s module (tscap-ebpf/kmod), else by a perf event (kernel 6.16), which is more expensive than ktime'
tsc:kernel\t'The kernel\'s own kfunc, bpf_get_cpu_time_counter; in no released kernel known'
tsc:module\t'The kfunc of tscap\'s kernel module (tscap-ebpf/kmod)'
tsc:module-ordered\t'The same module\'s ordered read'
tsc:perf\t'A perf event (kernel 6.16)'"
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l reference -d 'Take the times from an NTP server (ntp:HOST), from the servers that the host\'s daemon asks through the interface (ntp:passive), or from a PTP hardware clock (/dev/ptp0), and not from the host\'s clock; more than once for several' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s Q -l direction -d 'Which frames to take: received or sent ones, or both' -r -f -a "in\t'Received ones'
out\t'Sent ones'
inout\t'Both'"
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l tap -d 'A port that only listens (mirror, SPAN, tap): every frame ends in tscap\'s program, and the network stack sees nothing of the interface' -r -f -a "unused\t'Only if nothing else uses the interface'
force\t'Whatever uses it'"
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l hook -d 'Where received frames are stamped' -r -f -a "auto\t'Native XDP; the entry of an XDP program that is there already; else tcx, with --tap generic XDP'
xdp\t'Native XDP: in the driver, before a socket buffer is made'
generic\t'Generic XDP: in the network stack'
tcx\t'tcx: in the network stack, without any change of the driver'"
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l egress-point -d 'Where sent frames are stamped' -r -f -a "qdisc\t'tcx egress: before the queueing discipline'
driver\t'The tracepoint net_dev_start_xmit: behind the queueing discipline, where tcpdump is (kernel 6.12)'"
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l offloads -d 'What to do with receive offloads that hide how frames arrived (VLAN tag stripping, GRO, LRO)' -r -f -a "keep\t'Leave them as they are, and warn'
off\t'Turn them off for the capture and restore them after it, also if it is killed'"
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l hw-stamps -d 'Take the stamp that the interface\'s own clock gave a received frame too, beside tscap\'s, where the driver tells it' -r -f -a "read\t'Those of the frames that the interface stamps as it is'
set\t'Of every frame: the interface\'s receive filter is set to all for the capture, and restored after it, also if it is killed'"
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l ring-size -d 'Ring of each CPU: a power of two, 128K to 256M [default: 64M with up to 8 CPUs, less with more]' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l converter-cpu -d 'CPU for the converter thread [default: the last allowed CPU that is not in --rx-cpu; without --rx-cpu, the last one that takes no interrupt of the interface\'s receive queues]' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l priority -d 'Run the converter thread in real time (SCHED_FIFO), at this priority from 1 to 99: before every thread of the normal policy [default: normal; 1 without a number]' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l writers -d 'Converter threads, each of which writes the frames of its share of the CPUs to a file of its own, a part of the capture: out-w0.pcapng, out-w1.pcapng... of -w out.pcapng' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l rx-cpu -d 'Receive on these CPUs (0, 2-3, 0,2): spread the interface\'s queue interrupts over them for the capture, its poll threads where NAPI is threaded, and RPS in generic mode; count the frames that arrive elsewhere' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s Z -l relinquish-privileges -d 'Once everything is open, go on as this user [default: tscap, if there is one; root stays root with -Z root]' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l group -d 'Let this group read the files (mode 0640) [default: their owner alone]' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l io -d 'How to write files' -r -f -a "auto\t'Direct where the file system can; by way of the page cache where it can\'t, and while the disk is too slow'
direct\t'Past the page cache, from the rings to the disk'
buffered\t'By way of the page cache'"
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s f -d 'The same, in one argument (dumpcap\'s option)' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s F -d 'Read the expression from this file' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l filter-bytecode -d 'Take only the frames that match a compiled filter in this file, as tcpdump -ddd prints it: needs no libpcap here' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s C -l file-size -d 'Begin the next file when one is larger than this: millions of bytes, or with K, M or G as KiB, MiB or GiB; names are FILE, FILE1, FILE2...' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s G -l rotate-seconds -d 'Begin the next file every SECONDS; FILE is a strftime format for the local time of each file\'s start (out-%H%M%S.pcapng). Without one each file takes the place of the one before' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s W -l file-count -d 'With -C: this many files, then begin again with the first; names have a number with leading zeros. With -G: end with success after this many. With both: this many files in each period, then begin again with its first' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s b -l ring-buffer -d 'dumpcap\'s criteria, one an option: filesize:KB (1000 bytes), duration:SECONDS, interval:SECONDS (of the clock, so 3600 is every hour on the hour), packets:COUNT, files:COUNT (keep the latest COUNT); names are FILE_00001_20260102030405.pcapng' -r
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s z -l postrotate-command -d 'Run COMMAND FILE for each file when it is complete, without a shell and at the lowest priority; the capture does not wait for it' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s D -l list-interfaces -d 'List the interfaces and what they can do'
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s p -l no-promiscuous-mode -d 'Don\'t put the interface into promiscuous mode'
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s q -l quiet -d 'No live line, and at the end the account alone'
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s v -l verbose -d 'Also print what was prepared, and all of the summary'
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l json -d 'Write one JSON object a line to standard output (to standard error with -w -): ready, progress every second, steps of the clock, summary'
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l keep-raw -d 'Keep each frame\'s raw stamp beside its time, so that the file can be stamped again later'
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l force -d 'Stamp with the TSC even where its rate is not known to be constant; the file says so'
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l packet-meta -d 'Record direction and receive queue with each frame'
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s d -d 'Print the compiled filter and exit: -d for people, -dd for C, -ddd as numbers, all as tcpdump does. Needs neither root nor an interface'
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l dump-ebpf -d 'Print the filter as the kernel runs it, in the place of a call in the XDP program, and exit'
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tscap -n "__fish_tscap_using_subcommand clock" -l interval -d 'Time between two lines: seconds, or with units (500ms); at least 100ms' -r
complete -c tscap -n "__fish_tscap_using_subcommand clock" -l serve -d 'Share the clock with programs, which read it from memory: in the file PATH [default: /run/tscap_clock/clock]. No table is printed' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand clock" -l read -d 'Read the clock that `tscap clock --serve` shares, once; again every --interval for as long as --duration says' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand clock" -l at -d 'With --read: the times of a stamp from the last minute. A whole number is one of the counter, seconds with a decimal point or an RFC 3339 time one of CLOCK_REALTIME' -r
complete -c tscap -n "__fish_tscap_using_subcommand clock" -l duration -d 'Stop after this time' -r
complete -c tscap -n "__fish_tscap_using_subcommand clock" -l reference -d 'Also compare the clock with a PTP hardware clock, such as /dev/ptp0; with an NTP server, which is asked (ntp:HOST or ntp:HOST:PORT); or with those that this host\'s own daemon asks through -i (ntp:passive), where nothing is sent' -r
complete -c tscap -n "__fish_tscap_using_subcommand clock" -s i -l interface -d 'The interface at which NTP packets pass [default of ntp:HOST: that of the route]' -r
complete -c tscap -n "__fish_tscap_using_subcommand clock" -l log -d 'Write the clock\'s history to this file, about 1.2 MB an hour: `tscap convert --clock-log` stamps captures of this boot again by it. A log of the same boot is continued' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand clock" -l report -d 'At the end, write a page for a browser: offset, skew and Allan deviation from 0.1 s on; with --log, of the whole log' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand clock" -l audit-server -d 'Compare the stamps of an NTP server on this host with those of its packets at -i: what the host adds before the server\'s stamps and behind them'
complete -c tscap -n "__fish_tscap_using_subcommand clock" -l json -d 'Print JSON objects, one a line, instead of the table'
complete -c tscap -n "__fish_tscap_using_subcommand clock" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tscap -n "__fish_tscap_using_subcommand doctor" -s i -l interface -d 'Interface to examine as well' -r
complete -c tscap -n "__fish_tscap_using_subcommand doctor" -s v -l verbose -d 'List what is good as well'
complete -c tscap -n "__fish_tscap_using_subcommand doctor" -l json -d 'Write one JSON object to standard output'
complete -c tscap -n "__fish_tscap_using_subcommand doctor" -l fix -d 'Print what is to be changed of the interface, in place of the report'
complete -c tscap -n "__fish_tscap_using_subcommand doctor" -l yes -d 'With --fix: make the changes. They last until the next boot or `tscap restore`'
complete -c tscap -n "__fish_tscap_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tscap -n "__fish_tscap_using_subcommand compare" -s i -l interface -d 'Measure on the frames that this interface receives' -r
complete -c tscap -n "__fish_tscap_using_subcommand compare" -l cpu -d 'CPU to receive and stamp on [default: the first one allowed]; with -i, frames that arrive on another CPU are not measured' -r
complete -c tscap -n "__fish_tscap_using_subcommand compare" -l timeout -d 'With -i: longest wait for the frames of one turn' -r
complete -c tscap -n "__fish_tscap_using_subcommand compare" -l report -d 'Write a page with plots' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand compare" -l quick -d 'Take about half a minute; the output says which difference that can find'
complete -c tscap -n "__fish_tscap_using_subcommand compare" -l paper -d 'Measure the paper\'s 20,000 frames of each pattern a round: takes hours (the estimate is printed first)'
complete -c tscap -n "__fish_tscap_using_subcommand compare" -l force -d 'Measure the TSC even where its rate is not known to be constant'
complete -c tscap -n "__fish_tscap_using_subcommand compare" -l irqs-off -d 'Also measure ktime and the cheapest read of the TSC with the CPU\'s interrupts turned off around the stamp, as Orosz & Skopkó did: its cost, and whether the slowest stamps become faster (kernel 6.14)'
complete -c tscap -n "__fish_tscap_using_subcommand compare" -l observer -d 'Instead, measure what a capture does to traffic that passes: the round trip and the throughput of two programs, and the CPU time of that, with no capture, tscap, tcpdump, dumpcap and netsniff-ng in turns'
complete -c tscap -n "__fish_tscap_using_subcommand compare" -s v -l verbose -d 'Print all of the result: every table, the whole machine, and the paper\'s figures beside'
complete -c tscap -n "__fish_tscap_using_subcommand compare" -l json -d 'Write everything as one JSON object to standard output'
complete -c tscap -n "__fish_tscap_using_subcommand compare" -s h -l help -d 'Print help'
complete -c tscap -n "__fish_tscap_using_subcommand convert" -s w -l write -d 'File to write, or - for standard output; the summary then goes to standard error' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand convert" -l clock-log -d 'Use the log of `tscap clock --log`, of the same boot, instead of the capture\'s own history: one log serves many captures. Packets of times that the log does not cover stay as they are. Refused if these are more than half of the capture\'s time' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand convert" -l time-base -d 'Clock of the times in the copy [default: that of the capture, realtime]; the copy\'s interface descriptions name it. Other programs take every time for UTC: tai shows some 37 s ahead, monotonic just after 1970. Needs no raw stamps if the clock was not set during the capture. Unless --clock-log is given too, nothing is stamped again, and converting back gives the same file' -r
complete -c tscap -n "__fish_tscap_using_subcommand convert" -l leap-seconds -d 'Table of leap seconds for --time-base tai, used where no time daemon gave the kernel its TAI offset; the copy says so [default: that of tzdata, /usr/share/zoneinfo/leap-seconds.list]' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand convert" -l with -d 'Give the packets the times of the clock of another host, which captured B.pcapng meanwhile: by the packets that both captures have, there and back (docs/two-hosts.md). The copy\'s interface descriptions have the host and the bound' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand convert" -l max-drift -d 'With --with: greatest difference of the rates of both clocks, ppm [default: 100, or 600 if one of them is synchronised, and so may be slewed]' -r
complete -c tscap -n "__fish_tscap_using_subcommand convert" -s f -d 'The same, in one argument (dumpcap\'s option)' -r
complete -c tscap -n "__fish_tscap_using_subcommand convert" -s F -d 'Read the expression from this file' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand convert" -l filter-bytecode -d 'Take only the frames that match a compiled filter in this file, as tcpdump -ddd prints it: needs no libpcap here' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand convert" -l json -d 'Print the summary as one JSON object'
complete -c tscap -n "__fish_tscap_using_subcommand convert" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tscap -n "__fish_tscap_using_subcommand counters" -l stress -d 'Also measure under these loads, between idle phases: cpu, a loop on every CPU, twice; net, a capture at full rate on a veth pair in namespaces of its own' -r -f -a "cpu\t'A loop on every CPU'
net\t'A capture at full rate on a veth pair in namespaces of its own'"
complete -c tscap -n "__fish_tscap_using_subcommand counters" -l cycle -d 'Time of each phase: seconds, or with units; the paper\'s is 90m' -r
complete -c tscap -n "__fish_tscap_using_subcommand counters" -l duration -d 'Time of all phases together, instead of --cycle' -r
complete -c tscap -n "__fish_tscap_using_subcommand counters" -l reference -d 'PTP hardware clock that rates are measured by, such as /dev/ptp0' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand counters" -l cpu -d 'CPU to read on [default: the first one allowed]' -r
complete -c tscap -n "__fish_tscap_using_subcommand counters" -l report -d 'Write a page with plots' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand counters" -s v -l verbose -d 'Print all of the result: every table, the whole machine, and the paper\'s figures beside'
complete -c tscap -n "__fish_tscap_using_subcommand counters" -l json -d 'Write everything as one JSON object to standard output'
complete -c tscap -n "__fish_tscap_using_subcommand counters" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l in -d 'Interface where packets enter; of a file its name, or its number from 0 on' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l out -d 'Interface where they leave' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l reflect -d 'Interface where requests come in, and their replies go out' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l rtt -d 'Interface where requests go out, and their replies come in' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l mirror -d 'Mirror what --in receives and --out sends to interface TO by tc, and stamp the copies at FROM, the other end of its cable' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l file -d 'Read a capture in the place of interfaces that work now: one that has both; twice for the captures of two hosts, --in is in the first one and --out in the second one' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l in-direction -d 'With --file: where packets enter, what the interface received (in) or sent (out) [default: in; of two files out]' -r -f -a "in\t''
out\t''"
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l out-direction -d 'The same where they leave [default: out; of two files in]' -r -f -a "in\t''
out\t''"
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l out-point -d 'Where packets are seen when they leave' -r -f -a "tap\t'Behind the queueing discipline, where tcpdump is, and before it: the difference is the queueing discipline\'s'
egress\t'Before the queueing discipline only (tcx egress)'
peer\t'At the other end of the veth pair, in XDP'"
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l match -d 'What makes two packets one' -r -f -a "auto\t'reply for --reflect and --rtt, bridge for ports of one bridge, else route'
gen\t'Run, flow and sequence number of tscap gen'
bridge\t'The whole frame'
route\t'The packet without what a router changes: addresses of the link layer, TTL or hop limit, and checksums'
nat\t'Protocol, IP id, length and payload: what neither a router nor NAT changes'
reply\t'A request and the reply that echoes it'"
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l window -d 'Longest delay that is looked for: seconds, or with units (50ms). Packets are remembered for so long' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l max-packets -d 'Packets that are remembered at a time; more are counted as untracked' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l clock -d 'Clock of the stamps; times of CLOCK_TAI can be set, and are no delays' -r -f -a "auto\t'tsc by a kfunc, where there is one and nothing is seen at the tap, else ktime'
ktime\t'CLOCK_MONOTONIC, by bpf_ktime_get_ns'
tsc\t'The CPU\'s time-stamp counter; at the tap by a perf event (kernel 6.16)'"
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l reference -d 'Take the times from an NTP server (ntp:HOST), from the servers that the host\'s daemon asks through the interface (ntp:passive), or from a PTP hardware clock (/dev/ptp0), and not from the host\'s clock; more than once for several' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l ring-size -d 'Ring of each CPU (default: as for a capture)' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l netns -d 'The interfaces are in this network namespace: a name of ip netns, a path, or the number of a process' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l container -d 'The interfaces are in the network namespace of this container: its name, or its id or the beginning of that (Docker, Podman, containerd, CRI-O)' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l pod -d 'The interfaces are in the network namespace of this pod of Kubernetes on this node' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l to -d 'Send test packets to a session-reflector (RFC 8762, also TWAMP-light) on another host, and measure the delay there and back; more than once for several' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l serve -d 'Be a session-reflector at this interface: answer the test packets of tscap delay --to and of others' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l port -d 'Port of the reflector' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l address -d 'Answer at this address of the interface only' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l allow -d 'Answer these sources only; more than once for several [default: private and link-local addresses]' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l max-rate -d 'Packets a second that are answered, of each source; of all together ten times as many' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l max-sessions -d 'Sessions that are remembered; of others nothing is answered' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l ssid -d 'Session identifier of what is sent [default: by chance]; with --serve of what is answered, more than once for several [default: all]' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l key-file -d 'Authenticate packets by the key in this file, 32 to 128 hexadecimal digits, which only its owner may read' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l rate -d 'Packets a second of each session' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l poisson -d 'Send by a Poisson process with this mean gap' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l size -d 'Octets of a test packet, without the headers of IP and UDP [default: 64, or with a key 152]' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l dscp -d 'Differentiated services code point of test packets: a number, or a name (ef, af41, cs5)' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l align -d 'What aligns the clocks of both hosts [default: both; of two captures of one host nothing]' -r -f -a "both\t'What exchanges and UTC both allow'
exchange\t'The packets themselves, there and back: to half of a round trip'
utc\t'What both hosts\' clocks say of their error against UTC'"
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l max-drift -d 'Greatest difference of the rates of both clocks, ppm: all bounds of the alignment assume it [default: 100, or 600 if one of them is synchronised, and so may be slewed]' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l max-asymmetry -d 'The least delays there and back differ by no more than this: the bound of the alignment by exchanges is half of it then, if that is less' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l peer-netns -d 'With --out-point peer: the other end is in this network namespace' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l duration -d 'Stop after this time: seconds, or with units (1m30s)' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -s c -l count -d 'Stop when so many packets are matched' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l load -d 'Meanwhile load these CPUs as the paper on single-hop delay did: paper, or paper:0-1 [default CPUs: all that tscap may use]' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l parallel -d 'Meanwhile send frames of 192 bytes at this bit rate on another interface: 25Mbit:eth2' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l correction -d 'Also give the delays less the mean of this measurement, of a run without the device' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l label -d 'What this measurement is called beside others in tscap report' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l pcapng -d 'Write the slowest packets, as they entered and as they left, to a pcapng file' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l report -d 'At the end, write a page for a browser' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand delay" -s f -d 'The same, in one argument (dumpcap\'s option)' -r
complete -c tscap -n "__fish_tscap_using_subcommand delay" -s F -d 'Read the expression from this file' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l filter-bytecode -d 'Take only the frames that match a compiled filter in this file, as tcpdump -ddd prints it: needs no libpcap here' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l both -d 'Also measure the other way'
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l stateless -d 'Keep nothing of sessions: replies have the sequence number of their request, and loss has no direction'
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l twamp-light -d 'Also answer requests of 14 octets, by 44'
complete -c tscap -n "__fish_tscap_using_subcommand delay" -s v -l verbose -d 'Print all of the result: also the ten slowest packets, figures of RFC 8219, the whole machine, and the paper\'s figures beside'
complete -c tscap -n "__fish_tscap_using_subcommand delay" -s q -l quiet -d 'No table while it runs'
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l json -d 'Print JSON objects, one a line: each second of a live measurement, and the result'
complete -c tscap -n "__fish_tscap_using_subcommand delay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tscap -n "__fish_tscap_using_subcommand gen" -s i -l interface -d 'Interface to send on' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l pattern -d 'Traffic of Orosz & Skopkó\'s paper' -r -f -a "voip\t'G.729 voice: 140 bytes every 20 ms'
hd\t'HD video: 1368 bytes every 1.368 ms'"
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l size -d 'Frame size in bytes, from the Ethernet header to the end of the payload, without the frame check sequence [default: the least, 64 with IPv4]. A sweep: 64,512,1500 or 64-1500/100' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l gap -d 'From the end of a frame to the start of the next on a line of --line-rate: byte times (12), or a duration (10us), counted as in the papers, without preamble and frame check sequence. A sweep: 12,100,1000 or 1us,10us' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l rate -d 'Frames a second (100k, 1.5M), or bits a second of --size (8Mbit)' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l line-rate -d 'Line rate that gives byte times their length and forbids impossible gaps: 1G, 2.5G [default: 1G for --gap, none for --rate]' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -s c -l count -d 'Stop after this many frames; of a sweep, each step' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l duration -d 'Stop after this time: seconds, or with units (1m30s); of a sweep, each step' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l flows -d 'Number of flows, which take turns; each has its own UDP source port' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l vlan -d 'Tag frames with this VLAN' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l src -d 'Source address [default: 198.18.0.1, 2001:2::1; for benchmarks, RFC 2544]' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l dst -d 'Destination address [default: 198.19.0.1, 2001:2:0:8000::1]' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l dst-port -d 'UDP destination port' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l src-mac -d 'Source MAC address [default: the interface\'s]' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l dst-mac -d 'Destination MAC address [default: 02:00:00:00:00:02, nobody\'s]' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l sender -d 'How to send' -r -f -a "auto\t'Native frames into a veth interface if its other end takes them, else packet'
native\t'Native XDP frames, made in the kernel: veth only, up to about 3.4 kB'
packet\t'An AF_PACKET socket: any Ethernet interface'"
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l reference -d 'Take the times from an NTP server (ntp:HOST), from the servers that the host\'s daemon asks through the interface (ntp:passive), or from a PTP hardware clock (/dev/ptp0), and not from the host\'s clock; more than once for several' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l cpu -d 'CPU to send from [default: the first one allowed]' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l port -d 'UDP port that --echo answers on [default: 9, as of --dst-port]' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l address -d 'Address that --echo answers on [default: all]' -r
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l flat-out -d 'Send as fast as possible. 16 frames share a stamp, as the kernel passes them on'
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l bulks -d 'At a rate or with gaps: pass native frames on in bulks, all that are due within 1 ms, 64 at most. The sender reaches higher rates then. Each frame is stamped when it is due, and waits for the last frame of its bulk'
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l ipv6 -d 'IPv6 rather than IPv4'
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l yes-send-here -d 'Send into an interface that is neither veth nor tap: frames reach a real network'
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l echo -d 'Answer UDP packets rather than send: a program in user space that gives each back to its sender unchanged, on all addresses (--ipv6: those of IPv6)'
complete -c tscap -n "__fish_tscap_using_subcommand gen" -s q -l quiet -d 'No live line, and one line for each step'
complete -c tscap -n "__fish_tscap_using_subcommand gen" -s v -l verbose -d 'Also print how frames are sent'
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l json -d 'Write one JSON object a line to standard output: ready, progress every second, sent after each step, summary'
complete -c tscap -n "__fish_tscap_using_subcommand gen" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l size -d 'Frame sizes in bytes, from the Ethernet header to the end of the payload, without the frame check sequence: 64,512 or 64..1500/100' -r
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l gap -d 'Send with these gaps, byte times on a line of --line-rate: 12 or 12,100,1000' -r
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l rate -d 'Send at these rates: frames a second (2Mpps, 500k), or bits a second (8Mbit)' -r
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l line-rate -d 'Rate of the line on which --gap is counted' -r
complete -c tscap -n "__fish_tscap_using_subcommand loss" -s s -l snaplen -d 'Most bytes to capture of each frame; 0 or whole for all: 96,128,whole' -r
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l ring-size -d 'Rings of each CPU: powers of two, 128K to 256M; other programs get as much memory in total' -r
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l clock -d 'Stamp sources' -r -f -a "auto\t'The cheapest that works here: tsc by a kfunc, where the TSC is invariant, else ktime'
ktime\t'CLOCK_MONOTONIC, by bpf_ktime_get_ns'
tai\t'CLOCK_TAI, by bpf_ktime_get_tai_ns (kernel 6.1)'
tsc\t'The CPU\'s time-stamp counter: by a kfunc, of the kernel or of tscap\'s module (tscap-ebpf/kmod), else by a perf event (kernel 6.16), which is more expensive than ktime'"
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l duration -d 'Time for which frames are sent at each point; with --plan: for which the disk under --folder is written to [default there: 10s]' -r
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l peer -d 'Measure other programs beside tscap [default: none; with --paper: dumpcap, if it is installed]' -r -f -a "tcpdump\t''
dumpcap\t''
netsniff-ng\t''
xdpdump\t''"
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l receive-cpu -d 'Receive on this CPU rather than on the sender\'s, as with a network card: frames that it cannot receive in time are lost before the program [default: the sender\'s; with --paper: the last other one allowed]' -r
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l cpu -d 'CPU to send from, and to receive on unless --receive-cpu is given [default: the first one allowed]' -r
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l folder -d 'Folder for the captures, which are removed again [default: /dev/shm, which is memory, as in the paper]. With --plan: measure what the disk under it takes alone; the file that is written has no name and goes with the process' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l io -d 'With --plan: how to write to the disk under --folder, as captures do [default: auto]' -r -f -a "auto\t'Direct where the file system can; by way of the page cache where it can\'t, and while the disk is too slow'
direct\t'Past the page cache, from the rings to the disk'
buffered\t'By way of the page cache'"
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l file-rate -d 'Most bytes a second that the files take, such as 200M, as a slow disk would: sweeps write through a pipe that is read at this rate [default: what --folder takes]. With --plan the disk is not measured' -r
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l for -d 'With --plan: how long the load lasts' -r
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l port -d 'With --plan: say which CPUs, memory and disks a port of this bit rate needs that is full of frames of each --size: 10G, 100G' -r
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l from -d 'With --plan: take the costs from this file of `tscap loss --json` instead of measuring them' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l report -d 'Write a page with plots' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l quick -d 'Measure a few points in about 10 seconds'
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l paper -d 'Measure the paper\'s sweep: 72..1200/8 bytes at line rate, 5 s each, whole and with three snaplens, buffers of 2 and 32 MB, received on a CPU of its own, with dumpcap beside: takes hours (the estimate is printed first)'
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l flat-out -d 'Send as fast as possible [default, unless --gap or --rate is given]'
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l plan -d 'Say whether --rate frames of --size will fit --for some time, which loss they have, and which ring they need; without --rate: from which rate on each stage loses frames of each --size and --snaplen'
complete -c tscap -n "__fish_tscap_using_subcommand loss" -s v -l verbose -d 'Print all of the result: also what the stages cost, and the whole machine'
complete -c tscap -n "__fish_tscap_using_subcommand loss" -l json -d 'Write everything as one JSON object to standard output'
complete -c tscap -n "__fish_tscap_using_subcommand loss" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tscap -n "__fish_tscap_using_subcommand merge" -s w -l write -d 'File to write, or - for standard output; the summary then goes to standard error' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand merge" -l json -d 'Print the summary as one JSON object'
complete -c tscap -n "__fish_tscap_using_subcommand merge" -s h -l help -d 'Print help'
complete -c tscap -n "__fish_tscap_using_subcommand qos" -s i -l interface -d 'Interface where packets are stamped now; may be given several times' -r
complete -c tscap -n "__fish_tscap_using_subcommand qos" -s r -l read -d 'The capture' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l flow -d 'What a flow is' -r -f -a "5tuple\t'Protocol, addresses and ports'
rtp\t'Addresses, ports and synchronisation source of RTP over UDP'
dscp\t'The DSCP of the IP header'
gen\t'Run and flow of tscap gen'"
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l max-flows -d 'Flows at a time; to make room for more, the longest idle one is ended. The default of 16,384 takes up to 128 MiB, with --flow rtp 103 MiB, with --flow gen 241 MiB; streams in a file may take more' -r
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l rtp-clock -d 'Clock rate of RTP\'s payload types that have no fixed one, Hz; of one type: 96:48000' -r
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l voice-codec -d 'Codec of all flows, for R and MOS: g711-plc (G.711 with packet loss concealment), g711, g729a, g7231 or gsm-efr. Without it, payload types 0, 4, 8 and 18 of RTP tell it, with concealment for G.711' -r -f -a "g711\t''
g711-plc\t''
g729a\t''
g7231\t''
gsm-efr\t''"
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l voice-delay -d 'One-way delay of the path to where packets are stamped, for R and MOS of flows whose delay is not measured (default: not counted)' -r
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l sort -d 'What comes first' -r -f -a "packets\t'The flow of the most packets'
jitter\t'That of the greatest jitter; of flows without send times, of the greatest standard deviation of inter-arrival times'
loss\t'That of the most lost packets; of TCP, of the most retransmitted bytes'"
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l top -d 'Show so many flows' -r
complete -c tscap -n "__fish_tscap_using_subcommand qos" -s Q -l direction -d 'Which packets of an interface: those that it receives (in), sends (out), or both' -r -f -a "in\t'Received ones'
out\t'Sent ones'
inout\t'Both'"
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l clock -d 'Clock of the stamps' -r -f -a "auto\t'tsc by a kfunc, where there is one, else ktime'
ktime\t'CLOCK_MONOTONIC, by bpf_ktime_get_ns'
tsc\t'The CPU\'s time-stamp counter'"
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l reference -d 'Take the times from an NTP server (ntp:HOST), from the servers that the host\'s daemon asks through the interface (ntp:passive), or from a PTP hardware clock (/dev/ptp0), and not from the host\'s clock; more than once for several' -r
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l layers -d 'Tell how long received packets are between these layers of the network stack instead, such as xdp,tcx,pre,local-in,cgroup,app' -r -f -a "hw\t'The interface itself, by its hardware stamp of the packet, read at XDP (Linux 6.3)'
xdp\t'XDP: in the driver, or in the network stack where the driver has none'
tcx\t'tcx ingress: a socket buffer, before the protocols; clsact before Linux 6.6'
pre\t'netfilter PRE_ROUTING, before all rules (Linux 6.4)'
local-in\t'netfilter LOCAL_IN: packets for this host, before all rules (Linux 6.4)'
cgroup\t'The control group of the socket: packets that it is to get'
app\t'The receive call of an application takes a UDP packet from its socket'"
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l cgroup -d 'With --layers: the control group whose sockets count, a folder of a hierarchy of version 2 (default: its root)' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l netns -d 'The interfaces are in this network namespace: a name of ip netns, a path, or the number of a process' -r
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l container -d 'The interfaces are in the network namespace of this container: its name, or its id or the beginning of that (Docker, Podman, containerd, CRI-O)' -r
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l pod -d 'The interfaces are in the network namespace of this pod of Kubernetes on this node' -r
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l ring-size -d 'Ring of each CPU (default: as for a capture)' -r
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l duration -d 'Stop after this time: seconds, or with units (1m30s)' -r
complete -c tscap -n "__fish_tscap_using_subcommand qos" -s c -l count -d 'Stop when so many packets were seen' -r
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l report -d 'At the end, write a page for a browser' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l inner -d 'Look inside VXLAN and GRE: the inner packet is the one that counts'
complete -c tscap -n "__fish_tscap_using_subcommand qos" -s v -l verbose -d 'Print all of the result: also the figures of each flow, and the whole machine'
complete -c tscap -n "__fish_tscap_using_subcommand qos" -s q -l quiet -d 'No table while it runs'
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l json -d 'Print JSON objects, one a line: each second of a live measurement, and the result'
complete -c tscap -n "__fish_tscap_using_subcommand qos" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tscap -n "__fish_tscap_using_subcommand report" -s o -l output -d 'Write a page with tables and charts' -r -F
complete -c tscap -n "__fish_tscap_using_subcommand report" -l paper -d 'In the order of the papers: Tables I and II and Figs. 2 to 6 of Orosz and Skopkó (2013), then the four sessions of Skopkó\'s loss analysis, with the conditions here and there'
complete -c tscap -n "__fish_tscap_using_subcommand report" -s v -l verbose -d 'Print all of it: every table, the whole machine, and the papers\' figures beside'
complete -c tscap -n "__fish_tscap_using_subcommand report" -s h -l help -d 'Print help'
complete -c tscap -n "__fish_tscap_using_subcommand stamp" -s i -l interface -d 'Interface by name, or by its number in tscap -D' -r
complete -c tscap -n "__fish_tscap_using_subcommand stamp" -l netns -d 'The interfaces are in this network namespace: a name of ip netns, a path, or the number of a process' -r
complete -c tscap -n "__fish_tscap_using_subcommand stamp" -l container -d 'The interfaces are in the network namespace of this container: its name, or its id or the beginning of that (Docker, Podman, containerd, CRI-O)' -r
complete -c tscap -n "__fish_tscap_using_subcommand stamp" -l pod -d 'The interfaces are in the network namespace of this pod of Kubernetes on this node' -r
complete -c tscap -n "__fish_tscap_using_subcommand stamp" -l clock -d 'Clock to stamp frames with' -r -f -a "auto\t'The cheapest that works here: tsc by a kfunc, where the TSC is invariant, else ktime'
ktime\t'CLOCK_MONOTONIC, by bpf_ktime_get_ns'
tai\t'CLOCK_TAI, by bpf_ktime_get_tai_ns (kernel 6.1)'
tsc\t'The CPU\'s time-stamp counter: by a kfunc, of the kernel or of tscap\'s module (tscap-ebpf/kmod), else by a perf event (kernel 6.16), which is more expensive than ktime'
tsc:kernel\t'The kernel\'s own kfunc, bpf_get_cpu_time_counter; in no released kernel known'
tsc:module\t'The kfunc of tscap\'s kernel module (tscap-ebpf/kmod)'
tsc:module-ordered\t'The same module\'s ordered read'
tsc:perf\t'A perf event (kernel 6.16)'"
complete -c tscap -n "__fish_tscap_using_subcommand stamp" -l reference -d 'Take the times from an NTP server (ntp:HOST), from the servers that the host\'s daemon asks through the interface (ntp:passive), or from a PTP hardware clock (/dev/ptp0), and not from the host\'s clock; more than once for several' -r
complete -c tscap -n "__fish_tscap_using_subcommand stamp" -l send-times -d 'Write the send time and its Error Estimate into unauthenticated test packets of STAMP (RFC 8762) and TWAMP Light that this host sends from or to these UDP ports, at most 16' -r
complete -c tscap -n "__fish_tscap_using_subcommand stamp" -l duration -d 'Stop after this time: seconds, or with units (1m30s)' -r
complete -c tscap -n "__fish_tscap_using_subcommand stamp" -l json -d 'Write one JSON object a line to standard output: ready, progress every second, steps of the clock, summary'
complete -c tscap -n "__fish_tscap_using_subcommand stamp" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tscap -n "__fish_tscap_using_subcommand restore" -s h -l help -d 'Print help'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "capture" -d 'Capture frames into a pcapng file'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "clock" -d 'Watch the clock that converts TSC stamps'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "doctor" -d 'Examine whether this machine is fit for precise stamps'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "compare" -d 'Compare what a stamp costs on this machine: ktime, TAI, TSC'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "convert" -d 'Stamp a capture again, or keep only the packets that match a filter'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "counters" -d 'Measure what the counters of this machine are like: the TSC, HPET, ACPI, the kernel\'s clocks'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "delay" -d 'Measure how long packets take from one interface to another'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "gen" -d 'Send test frames that carry their own send stamps'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "loss" -d 'Measure where a capture loses frames, and predict it'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "merge" -d 'Join captures by time into one pcapng'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "qos" -d 'Tell rate, delay, jitter, loss and order of each flow'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "report" -d 'Print a saved comparison, sweep of loss, measurement of delays or of flows, or log of the clock'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "stamp" -d 'Give other programs tscap\'s receive times'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "restore" -d 'Restore the settings that a killed capture or doctor --fix had changed'
complete -c tscap -n "__fish_tscap_using_subcommand help; and not __fish_seen_subcommand_from capture clock doctor compare convert counters delay gen loss merge qos report stamp restore help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'

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

complete -c tscap -n __tscap_is_capture -s i -l interface -d 'Interface to capture on, or any for all; may be given several times' -r
complete -c tscap -n __tscap_is_capture -l netns -d 'Capture in this network namespace: a name of ip netns, a path, or the number of a process; may be given several times' -r
complete -c tscap -n __tscap_is_capture -l container -d 'Capture in the network namespace of this container: its name, or its id or the beginning of that (Docker, Podman, containerd, CRI-O); may be given several times' -r
complete -c tscap -n __tscap_is_capture -l pod -d 'Capture in the network namespace of this pod of Kubernetes on this node; may be given several times' -r
complete -c tscap -n __tscap_is_capture -s w -l write -d 'File to write, or - for standard output; without it, a live view on a terminal' -r -F
complete -c tscap -n __tscap_is_capture -s s -l snaplen -d 'Most bytes to capture of each frame; 0 for the default [default: 65428; without -w 64]' -r
complete -c tscap -n __tscap_is_capture -s c -l count -d 'Stop after this many frames' -r
complete -c tscap -n __tscap_is_capture -l duration -d 'Stop after this time: seconds, or with units (1m30s)' -r
complete -c tscap -n __tscap_is_capture -s a -l autostop -d 'dumpcap\'s conditions to stop: duration:SECONDS is --duration, packets:COUNT is --count' -r
complete -c tscap -n __tscap_is_capture -l metrics-file -d 'Write the counters to FILE every 10 s and at the end, in Prometheus\'s text format, for node_exporter\'s textfile collector: FILE must end in .prom' -r -F
complete -c tscap -n __tscap_is_capture -l clock -d 'Clock to stamp frames with' -r -f -a "auto\t'The cheapest that works here: tsc by a kfunc, where the TSC is invariant, else ktime'
ktime\t'CLOCK_MONOTONIC, by bpf_ktime_get_ns'
tai\t'CLOCK_TAI, by bpf_ktime_get_tai_ns (kernel 6.1)'
tsc\t'The CPU\'s time-stamp counter: by a kfunc, of the kernel or of tscap\'s module (tscap-ebpf/kmod), else by a perf event (kernel 6.16), which is more expensive than ktime'
tsc:kernel\t'The kernel\'s own kfunc, bpf_get_cpu_time_counter; in no released kernel known'
tsc:module\t'The kfunc of tscap\'s kernel module (tscap-ebpf/kmod)'
tsc:module-ordered\t'The same module\'s ordered read'
tsc:perf\t'A perf event (kernel 6.16)'"
complete -c tscap -n __tscap_is_capture -l reference -d 'Take the times from an NTP server (ntp:HOST), from the servers that the host\'s daemon asks through the interface (ntp:passive), or from a PTP hardware clock (/dev/ptp0), and not from the host\'s clock; more than once for several' -r
complete -c tscap -n __tscap_is_capture -s Q -l direction -d 'Which frames to take: received or sent ones, or both' -r -f -a "in\t'Received ones'
out\t'Sent ones'
inout\t'Both'"
complete -c tscap -n __tscap_is_capture -l tap -d 'A port that only listens (mirror, SPAN, tap): every frame ends in tscap\'s program, and the network stack sees nothing of the interface' -r -f -a "unused\t'Only if nothing else uses the interface'
force\t'Whatever uses it'"
complete -c tscap -n __tscap_is_capture -l hook -d 'Where received frames are stamped' -r -f -a "auto\t'Native XDP; the entry of an XDP program that is there already; else tcx, with --tap generic XDP'
xdp\t'Native XDP: in the driver, before a socket buffer is made'
generic\t'Generic XDP: in the network stack'
tcx\t'tcx: in the network stack, without any change of the driver'"
complete -c tscap -n __tscap_is_capture -l egress-point -d 'Where sent frames are stamped' -r -f -a "qdisc\t'tcx egress: before the queueing discipline'
driver\t'The tracepoint net_dev_start_xmit: behind the queueing discipline, where tcpdump is (kernel 6.12)'"
complete -c tscap -n __tscap_is_capture -l offloads -d 'What to do with receive offloads that hide how frames arrived (VLAN tag stripping, GRO, LRO)' -r -f -a "keep\t'Leave them as they are, and warn'
off\t'Turn them off for the capture and restore them after it, also if it is killed'"
complete -c tscap -n __tscap_is_capture -l hw-stamps -d 'Take the stamp that the interface\'s own clock gave a received frame too, beside tscap\'s, where the driver tells it' -r -f -a "read\t'Those of the frames that the interface stamps as it is'
set\t'Of every frame: the interface\'s receive filter is set to all for the capture, and restored after it, also if it is killed'"
complete -c tscap -n __tscap_is_capture -l ring-size -d 'Ring of each CPU: a power of two, 128K to 256M [default: 64M with up to 8 CPUs, less with more]' -r
complete -c tscap -n __tscap_is_capture -l converter-cpu -d 'CPU for the converter thread [default: the last allowed CPU that is not in --rx-cpu; without --rx-cpu, the last one that takes no interrupt of the interface\'s receive queues]' -r
complete -c tscap -n __tscap_is_capture -l priority -d 'Run the converter thread in real time (SCHED_FIFO), at this priority from 1 to 99: before every thread of the normal policy [default: normal; 1 without a number]' -r
complete -c tscap -n __tscap_is_capture -l writers -d 'Converter threads, each of which writes the frames of its share of the CPUs to a file of its own, a part of the capture: out-w0.pcapng, out-w1.pcapng... of -w out.pcapng' -r
complete -c tscap -n __tscap_is_capture -l rx-cpu -d 'Receive on these CPUs (0, 2-3, 0,2): spread the interface\'s queue interrupts over them for the capture, its poll threads where NAPI is threaded, and RPS in generic mode; count the frames that arrive elsewhere' -r
complete -c tscap -n __tscap_is_capture -s Z -l relinquish-privileges -d 'Once everything is open, go on as this user [default: tscap, if there is one; root stays root with -Z root]' -r
complete -c tscap -n __tscap_is_capture -l group -d 'Let this group read the files (mode 0640) [default: their owner alone]' -r
complete -c tscap -n __tscap_is_capture -l io -d 'How to write files' -r -f -a "auto\t'Direct where the file system can; by way of the page cache where it can\'t, and while the disk is too slow'
direct\t'Past the page cache, from the rings to the disk'
buffered\t'By way of the page cache'"
complete -c tscap -n __tscap_is_capture -s f -d 'The same, in one argument (dumpcap\'s option)' -r
complete -c tscap -n __tscap_is_capture -s F -d 'Read the expression from this file' -r -F
complete -c tscap -n __tscap_is_capture -l filter-bytecode -d 'Take only the frames that match a compiled filter in this file, as tcpdump -ddd prints it: needs no libpcap here' -r -F
complete -c tscap -n __tscap_is_capture -s C -l file-size -d 'Begin the next file when one is larger than this: millions of bytes, or with K, M or G as KiB, MiB or GiB; names are FILE, FILE1, FILE2...' -r
complete -c tscap -n __tscap_is_capture -s G -l rotate-seconds -d 'Begin the next file every SECONDS; FILE is a strftime format for the local time of each file\'s start (out-%H%M%S.pcapng). Without one each file takes the place of the one before' -r
complete -c tscap -n __tscap_is_capture -s W -l file-count -d 'With -C: this many files, then begin again with the first; names have a number with leading zeros. With -G: end with success after this many. With both: this many files in each period, then begin again with its first' -r
complete -c tscap -n __tscap_is_capture -s b -l ring-buffer -d 'dumpcap\'s criteria, one an option: filesize:KB (1000 bytes), duration:SECONDS, interval:SECONDS (of the clock, so 3600 is every hour on the hour), packets:COUNT, files:COUNT (keep the latest COUNT); names are FILE_00001_20260102030405.pcapng' -r
complete -c tscap -n __tscap_is_capture -s z -l postrotate-command -d 'Run COMMAND FILE for each file when it is complete, without a shell and at the lowest priority; the capture does not wait for it' -r -F
complete -c tscap -n __tscap_is_capture -s D -l list-interfaces -d 'List the interfaces and what they can do'
complete -c tscap -n __tscap_is_capture -s p -l no-promiscuous-mode -d 'Don\'t put the interface into promiscuous mode'
complete -c tscap -n __tscap_is_capture -s q -l quiet -d 'No live line, and at the end the account alone'
complete -c tscap -n __tscap_is_capture -s v -l verbose -d 'Also print what was prepared, and all of the summary'
complete -c tscap -n __tscap_is_capture -l json -d 'Write one JSON object a line to standard output (to standard error with -w -): ready, progress every second, steps of the clock, summary'
complete -c tscap -n __tscap_is_capture -l keep-raw -d 'Keep each frame\'s raw stamp beside its time, so that the file can be stamped again later'
complete -c tscap -n __tscap_is_capture -l force -d 'Stamp with the TSC even where its rate is not known to be constant; the file says so'
complete -c tscap -n __tscap_is_capture -l packet-meta -d 'Record direction and receive queue with each frame'
complete -c tscap -n __tscap_is_capture -s d -d 'Print the compiled filter and exit: -d for people, -dd for C, -ddd as numbers, all as tcpdump does. Needs neither root nor an interface'
complete -c tscap -n __tscap_is_capture -l dump-ebpf -d 'Print the filter as the kernel runs it, in the place of a call in the XDP program, and exit'
complete -c tscap -n __tscap_is_capture -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l interface -x -a "(__tscap_interfaces)"
complete -c tscap -n __tscap_is_capture -l interface -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand capture" -s i -x -a "(__tscap_interfaces)"
complete -c tscap -n __tscap_is_capture -s i -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l netns -x -a "(__tscap_namespaces)"
complete -c tscap -n __tscap_is_capture -l netns -x -a "(__tscap_namespaces)"
complete -c tscap -n "__fish_tscap_using_subcommand capture" -l container -x -a "(__tscap_containers)"
complete -c tscap -n __tscap_is_capture -l container -x -a "(__tscap_containers)"
complete -c tscap -n "__fish_tscap_using_subcommand clock" -l interface -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand clock" -s i -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand doctor" -l interface -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand doctor" -s i -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand compare" -l interface -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand compare" -s i -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l in -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l out -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l reflect -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l rtt -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l netns -x -a "(__tscap_namespaces)"
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l peer-netns -x -a "(__tscap_namespaces)"
complete -c tscap -n "__fish_tscap_using_subcommand delay" -l container -x -a "(__tscap_containers)"
complete -c tscap -n "__fish_tscap_using_subcommand gen" -l interface -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand gen" -s i -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l interface -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand qos" -s i -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l netns -x -a "(__tscap_namespaces)"
complete -c tscap -n "__fish_tscap_using_subcommand qos" -l container -x -a "(__tscap_containers)"
complete -c tscap -n "__fish_tscap_using_subcommand stamp" -l interface -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand stamp" -s i -x -a "(__tscap_interfaces)"
complete -c tscap -n "__fish_tscap_using_subcommand stamp" -l netns -x -a "(__tscap_namespaces)"
complete -c tscap -n "__fish_tscap_using_subcommand stamp" -l container -x -a "(__tscap_containers)"
