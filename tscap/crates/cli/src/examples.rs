//! Examples of each command, for its help and its man page.

use std::fmt::Write as _;

/// A command line, and what it does.
pub type Example = (&'static str, &'static str);

/// By command; those of `tscap` itself first.
const ALL: &[(&str, &[Example])] = &[
    (
        "tscap",
        &[
            ("tscap -D", "lists the interfaces"),
            ("tscap -i eth0", "shows counts of frames, and keeps none"),
            ("tscap -i eth0 -w out.pcapng", "captures until Ctrl-C"),
            (
                "tscap doctor -i eth0",
                "says what this machine lacks for precise times",
            ),
            ("tscap help --snaplen", "explains an option"),
        ],
    ),
    (
        "capture",
        &[
            (
                "tscap capture -i eth0 -w out.pcapng",
                "both directions, whole frames, until Ctrl-C",
            ),
            (
                "tscap capture -i eth0 -w out.pcapng -s 96 --duration 1m tcp port 443",
                "a minute of the first 96 bytes of the frames that match",
            ),
            (
                "tscap capture -i any -w out-%H%M.pcapng -G 60 -W 10",
                "all interfaces, a file each minute, the latest ten of them",
            ),
            (
                "tscap capture --netns blue -i eth0 -w out.pcapng",
                "in another network namespace",
            ),
            (
                "tscap capture -i eth0 -w - | tshark -r -",
                "prints the packets while they come",
            ),
        ],
    ),
    (
        "clock",
        &[
            ("tscap clock", "watches the host's clock until Ctrl-C"),
            (
                "tscap clock --log clock.log --report clock.html --duration 1h",
                "keeps what it sees, and draws it",
            ),
            (
                "tscap clock --reference ntp:192.0.2.123 --log clock.log",
                "beside an NTP server; /dev/ptp0 is the clock of a network card",
            ),
            (
                "tscap clock --serve",
                "shares it with programs, which read it from memory",
            ),
            ("tscap clock --read", "reads what is shared"),
        ],
    ),
    (
        "compare",
        &[
            ("tscap compare --quick", "a first answer"),
            (
                "tscap compare --report compare.html",
                "in full, with a page for a browser",
            ),
            (
                "tscap compare --quick --json > compare.json",
                "for tscap report and other programs",
            ),
        ],
    ),
    (
        "convert",
        &[
            (
                "tscap convert out.pcapng -w better.pcapng",
                "stamps a capture made with --keep-raw again",
            ),
            (
                "tscap convert out.pcapng -w https.pcapng tcp port 443",
                "copies the packets that match",
            ),
            (
                "tscap convert out.pcapng -w tai.pcapng --time-base tai",
                "gives the times of another clock",
            ),
            (
                "tscap convert a.pcapng --with b.pcapng -w out.pcapng",
                "by the clock of the host of b.pcapng",
            ),
        ],
    ),
    (
        "counters",
        &[
            (
                "tscap counters --report counters.html",
                "draws what the machine's counters are like",
            ),
            (
                "tscap counters --json > counters.json",
                "for other programs",
            ),
            (
                "tscap counters --stress cpu,net --cycle 90m",
                "under loads that come and go",
            ),
        ],
    ),
    (
        "delay",
        &[
            (
                "tscap delay --in eth0 --out eth1 --duration 10",
                "through this machine, live",
            ),
            (
                "tscap delay --file a.pcapng --file b.pcapng --both",
                "between two hosts, of a capture of each",
            ),
            (
                "tscap delay --in eth0 --out eth1 --report delay.html udp",
                "of UDP, with a page for a browser",
            ),
            (
                "tscap delay --serve eth0",
                "answers the test packets of another host",
            ),
            (
                "tscap delay --to 192.0.2.7 --duration 10",
                "there and back, with bounds each way",
            ),
        ],
    ),
    (
        "doctor",
        &[
            ("tscap doctor", "examines the machine"),
            ("tscap doctor -i eth0", "and an interface"),
            (
                "tscap doctor -i eth0 --fix",
                "shows what would be changed; --yes does it",
            ),
        ],
    ),
    (
        "gen",
        &[
            (
                "tscap gen -i veth0 --rate 100k --size 128 --duration 2",
                "100,000 frames a second",
            ),
            (
                "tscap gen -i veth0 --flat-out --size 64-1500/200 --count 100000",
                "as fast as it goes",
            ),
            ("tscap gen -i veth0 --pattern voip --count 50", "as a call"),
            (
                "tscap qos --flow gen out.pcapng",
                "tells what became of test frames in a capture",
            ),
        ],
    ),
    (
        "loss",
        &[
            ("tscap loss --quick", "a first answer"),
            ("tscap loss --json > loss.json", "in full"),
            (
                "tscap loss --plan --rate 2Mpps --size 512 --for 10s --from loss.json",
                "says whether a load will fit",
            ),
            (
                "tscap loss --plan --port 100G --size 64,256,1500 --from loss.json",
                "says from which load on frames are lost",
            ),
        ],
    ),
    (
        "merge",
        &[
            (
                "tscap merge a.pcapng b.pcapng -w all.pcapng",
                "joins captures in order of time",
            ),
            (
                "tscap merge out-w0.pcapng out-w1.pcapng -w out.pcapng",
                "joins the parts of a capture with --writers 2",
            ),
            (
                "tscap merge --json a.pcapng b.pcapng -w all.pcapng",
                "with the accounts as JSON",
            ),
        ],
    ),
    (
        "qos",
        &[
            (
                "tscap qos -i eth0",
                "the flows of an interface, until Ctrl-C",
            ),
            (
                "tscap qos -i eth0 --flow rtp --sort jitter udp",
                "calls, the worst first",
            ),
            ("tscap qos calls.pcapng", "the flows of a capture"),
            (
                "tscap qos -i eth0 --layers xdp,tcx,local-in,app --duration 10",
                "how long packets are between layers of the stack",
            ),
        ],
    ),
    (
        "report",
        &[
            (
                "tscap report compare.json -o compare.html",
                "draws a result again",
            ),
            (
                "tscap report router.json firewall.json -o delay.html",
                "draws several beside each other",
            ),
            ("tscap report voip.json", "prints it"),
        ],
    ),
    (
        "restore",
        &[
            (
                "tscap restore",
                "gives back what captures have left that were killed",
            ),
            (
                "tscap doctor -i eth0 --fix --yes",
                "changes settings that tscap restore gives back",
            ),
            (
                "tscap capture -i eth0 -w out.pcapng --offloads off",
                "changes settings, and gives them back itself unless it is killed",
            ),
        ],
    ),
    (
        "stamp",
        &[
            (
                "tscap stamp -i eth0",
                "gives programs receive times until Ctrl-C",
            ),
            (
                "tscap stamp -i eth0 --clock ktime --duration 1h",
                "by another clock, for an hour",
            ),
            (
                "tscap stamp -i eth0 --send-times 862",
                "also writes send times into the packets of a STAMP reflector",
            ),
            (
                "tscap stamp -i eth0 --json",
                "tells each second how many frames were stamped",
            ),
        ],
    ),
];

/// Of a command by its name; of `tscap` itself by that.
pub fn of(command: &str) -> &'static [Example] {
    let mut all = ALL.iter().filter(|(name, _)| *name == command);
    all.next().map_or(&[], |(_, examples)| *examples)
}

/// What stands in the help of a command behind its options: its examples, and `more`.
pub(super) fn before(command: &str, more: &str) -> String {
    let mut text = text(command);
    if !more.is_empty() {
        let _ = write!(text, "\n\n{more}");
    }
    text
}

/// The examples of a command as its help has them.
pub fn text(command: &str) -> String {
    let mut text = "Examples:".to_owned();
    for (line, does) in of(command) {
        let _ = write!(text, "\n  {line}\n      {does}");
    }
    text
}
