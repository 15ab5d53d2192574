//! What Orosz & Skopkó measured: Multi-threaded Packet Timestamping for End-to-End
//! QoS Evaluation, ICSNC 2013, tables I and II.

pub(crate) const MACHINE: &str = "Core i7 2.93 GHz, e1000e, Linux 2.6.39";

/// One row of their tables.
pub(crate) struct Row {
    pub stamp: &'static str,
    /// Overhead of a stamp, ns.
    pub mean: f64,
    /// What they call its variance. It is in ns, so a deviation.
    pub deviation: f64,
}

pub(crate) struct Pattern {
    /// As in [`tscap_lab::compare::schema::Precision`].
    pub name: &'static str,
    pub traffic: &'static str,
    pub rows: [Row; 2],
}

pub(crate) const PATTERNS: [Pattern; 2] = [
    Pattern {
        name: "voip",
        traffic: "pattern 1, 140 B every 20 ms",
        rows: [
            row("ktime", 195.2762, 176.0954),
            row("TSC offload", 73.49326, 3.793385),
        ],
    },
    Pattern {
        name: "hd",
        traffic: "pattern 2, 1368 B every 1.368 ms",
        rows: [
            row("ktime", 173.3606, 177.1197),
            row("TSC offload", 70.84912, 8.197374),
        ],
    },
];

const fn row(stamp: &'static str, mean: f64, deviation: f64) -> Row {
    Row {
        stamp,
        mean,
        deviation,
    }
}

/// What Skopkó's loss analysis says of its sessions: session, snaplen, buffers, and what was
/// lost.
pub(crate) const LOSSLESS: [[&str; 4]; 4] = [
    [
        "1",
        "whole",
        "default, 2 MB",
        "lossy at nearly every size; heavy kernel loss and load below 168 B",
    ],
    [
        "2",
        "256, 128, 96",
        "default, 2 MB",
        "less loss by dumpcap, the shorter the snaplen; none of the smallest sizes gains",
    ],
    [
        "3",
        "whole",
        "kernel \u{d7}64, 32 MB",
        "352 B at line rate all captured",
    ],
    [
        "4",
        "96",
        "kernel \u{d7}64, 32 MB",
        "from 256 B on no loss; reliable from 200 B on",
    ],
];
