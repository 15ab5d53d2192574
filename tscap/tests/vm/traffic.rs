//! The frames that `compare` sends itself, of which it needs too many for an emulated
//! machine: `agent traffic`, in the guest.

use tscap_clock::measure_tsc_rate;
use tscap_common::stream::STAMP_MASK;
use tscap_host::affinity;
use tscap_lab::compare::{Programs, Settings};
use tscap_network::bpf::{InterfaceLink, LinkPoint};
use tscap_time::tsc;
use tscap_traffic::load::{Burst, Pair, Traffic};

const FRAMES: u64 = 50;
/// `enum xdp_action`.
const XDP_DROP: u32 = 1;

/// Sends some; panics unless each carries the TSC of when it was sent.
pub fn send() {
    let settings = Settings {
        cpu: 0,
        action: XDP_DROP,
        more_reads: 0,
        more_work: 0,
    };
    affinity::pin_to(settings.cpu).expect("go to the CPU");
    let rate = measure_tsc_rate().expect("the TSC's rate");
    let pair = Pair::new().expect("a pair");
    let mut programs = Programs::load(settings, &[], None, None).expect("measuring programs");
    let attach = || {
        let program = programs.cost_program(None)?;
        InterfaceLink::attach(program, pair.rx.index, LinkPoint::NativeXdp)
    };
    let _link = pair.rx_netns.within(attach).expect("attach");
    pair.tx_netns.enter().expect("go to the sender's end");
    let traffic = Traffic::new(&pair, settings.cpu, Some(rate));
    let mut traffic = traffic.expect("a sender");
    if let Some(why) = traffic.no_tsc() {
        panic!("no TSC in the frames: {why}");
    }
    let now = || tsc::read().0 & STAMP_MASK;
    let before = now();
    let measured = programs.measure(&mut traffic, Burst::fast(FRAMES));
    let samples = measured.expect("measure frames").samples;
    let while_sent = before..=now();
    assert_eq!(samples.len() as u64, FRAMES);
    for sample in samples {
        let sent = sample.sent_tsc;
        assert!(while_sent.contains(&sent), "{sent} in {while_sent:?}");
    }
}
