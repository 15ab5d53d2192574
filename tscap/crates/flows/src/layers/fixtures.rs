//! A result made by hand, for tests.

use super::schema::{
    Cost, FlowResidences, LayerAccount, LayerReport, Method, MissingLayer, OwnPrograms, Residence,
    Residences, VERSION,
};
use crate::schema::{Bin, Figures, FlowBy};
use tscap_programs::hook::Layer;
use tscap_results::envelope::Kind;
use tscap_results::fixtures::about;

/// Three layers, of which the last could not be had; some packets are merged, some dropped.
pub fn residences() -> Residences {
    let cost = Some(Cost {
        turns: 2,
        runs: 100,
        mean_ns: 512.4,
        least_ns: 500.0,
        greatest_ns: 530.5,
    });
    let xdp = LayerAccount {
        seen: 1_010,
        unkeyed: 8,
        keyed: 1_002,
        ambiguous: 2,
        first: 1_000,
        went_on: 900,
        ended: 100,
        ..LayerAccount::default()
    };
    let cgroup = LayerAccount {
        seen: 915,
        unrecorded: [("ring_full".to_owned(), 3)].into(),
        keyed: 912,
        first: 12,
        aggregates: 12,
        segments: 60,
        came: 900,
        ended: 912,
        ..LayerAccount::default()
    };
    let report = |layer, hook: &str, account, cost| LayerReport {
        layer,
        hook: hook.into(),
        account,
        cost,
    };
    let figures = Figures {
        n: 900,
        min_ns: 450,
        mean_ns: 1_000.5,
        sd_ns: 300.25,
        p50_ns: Some(900),
        p90_ns: Some(1_440),
        p99_ns: Some(2_850),
        p99_9_ns: None,
        max_ns: 28_500,
        negative: 0,
        bound_ns: Some(1_202),
    };
    let bin = |from_ns, to_ns, n| Bin { from_ns, to_ns, n };
    let all = FlowResidences {
        name: "all packets".into(),
        packets: 1_012,
        in_cost_turns: 100,
        residences: vec![Residence {
            from: Layer::Xdp,
            to: Layer::Tcx,
            figures: Some(figures),
            own_programs: Some(OwnPrograms {
                mean_ns: 540.5,
                greatest_ns: 1_200,
            }),
            went_back: 1,
            histogram: vec![bin(450, 511, 100), bin(896, 959, 800)],
        }],
    };
    let flow = |name: &str, packets| FlowResidences {
        name: name.into(),
        packets,
        residences: all
            .residences
            .iter()
            .map(|it| Residence {
                histogram: Vec::new(),
                ..it.clone()
            })
            .collect(),
        ..all.clone()
    };
    Residences {
        about: about("qos").envelope(Kind::Layers, VERSION, false),
        method: Method {
            interface: "a".into(),
            clock: "bpf_ktime_get_ns".into(),
            flow: FlowBy::FiveTuple,
            inner: false,
            top: 1,
            max_flows: 16_384,
            window_ns: 1_000_000_000,
            memory_bytes: 64 << 20,
        },
        layers: vec![
            report(Layer::Xdp, "native XDP", xdp, cost),
            report(
                Layer::Cgroup,
                "ingress of the control group /c",
                cgroup,
                None,
            ),
        ],
        absent: vec![MissingLayer {
            layer: Layer::App,
            why: "this kernel lets nobody".into(),
        }],
        flows: vec![
            flow("10.0.0.1:5004 → 10.0.0.2:5004 udp", 1_000),
            flow("10.0.0.1:80 → 10.0.0.2:5000 tcp", 12),
        ],
        others: FlowResidences {
            name: "all others".into(),
            packets: 0,
            in_cost_turns: 0,
            residences: Vec::new(),
        },
        all,
        warnings: vec!["without the layer app: this kernel lets nobody".into()],
    }
}
