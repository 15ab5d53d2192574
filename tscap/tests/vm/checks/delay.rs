//! Delays on other kernels: each way to match, by programs at each hook.

use tscap_delay::schema::Measurement;

use crate::agent::TSCAP;
use crate::guest::Guest;
use crate::machine::{Processor, Rig};

/// Echo requests, and so many answers.
const ECHOES: u64 = 4;
/// The guest routes between `va`, behind which 10.9.0.2 answers, and `vb`, behind which somebody
/// asks. Tells the process in whose network namespace that is.
const ROUTER: &str = "end() { \
    unshare -n sleep 1000 > /dev/null 2>&1 & \
    ip link add $1 type veth && sleep 1 && ip link set veth0 netns $! && \
    ip addr add $2.1/24 dev $1 && ip link set $1 up && \
    nsenter -t $! -n sh -c \"ip addr add $2.2/24 dev veth0 && ip link set veth0 up && \
    ip route add default via $2.1\"; }; \
    echo 1 > /proc/sys/net/ipv4/ip_forward && end va 10.9.0 && end vb 10.9.1 && echo $!";

/// Measures with these options while `ping` asks.
fn measure(guest: &Guest, options: &str, ping: &str) -> Measurement {
    let options: Vec<_> = options.split(' ').collect();
    let line = [
        &[TSCAP, "delay"],
        &options[..],
        &["--window", "500ms", "--json"],
    ]
    .concat();
    let running = guest.start(&line).ready();
    let ping: Vec<_> = ping.split(' ').collect();
    guest.must(&ping);
    let finished = running.wait();
    let json = finished.stdout.lines().last().unwrap_or_default();
    tscap_report::saved::read::<Measurement>(json)
        .unwrap_or_else(|error| panic!("{error}: {}{}", finished.stdout, finished.stderr))
}

/// At the tap and by XDP; through a router, where each packet that is sent is matched at each
/// exit; then each key is computed by programs that this kernel verifies.
pub fn there_and_back(rig: &Rig) {
    let machine = rig.boot_on(Processor::ConstantTsc, &[]);
    let guest = &machine.guest;
    let asking = guest.must(&["sh", "-c", ROUTER]);
    let here = format!("ping -c {ECHOES} 10.9.0.2");
    let through = format!("nsenter -t {} -n {here}", asking.trim());

    let measurement = measure(guest, &format!("--rtt va -c {ECHOES} --duration 60"), &here);
    let exit = &measurement.passages[0].exits[0];
    assert_eq!(exit.account.matched, ECHOES, "{exit:?}");
    let delays = exit.delays.as_ref().expect("they were matched");
    assert!(delays.summary.min > 0, "{delays:?}");

    for matcher in ["route", "nat"] {
        let count = 2 * ECHOES;
        let options = format!("--in vb --out va --both --match {matcher} -c {count} --duration 60");
        let measurement = measure(guest, &options, &through);
        assert_eq!(measurement.passages.len(), 2);
        for exit in measurement.passages.iter().flat_map(|it| &it.exits) {
            let account = &exit.account;
            let ends = [account.entered, account.matched, account.left];
            assert_eq!(ends, [ECHOES; 3], "{matcher}: {exit:?}");
        }
    }
    for matcher in ["gen", "bridge"] {
        let options = format!("--reflect va --match {matcher} --duration 2");
        let measurement = measure(guest, &options, &here);
        let entry = &measurement.passages[0].entry;
        let unrecorded: u64 = entry.unrecorded.values().sum();
        let all = entry.keyed + entry.unkeyed + unrecorded;
        assert_eq!(entry.seen, all, "{entry:?}");
        assert!(entry.seen > 0, "{entry:?}");
    }
}
