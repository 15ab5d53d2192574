//! What the paper on single-hop delay of embedded systems measured, for a column beside:
//! Cavium OCTEON II (CN6220), Linux 3.10.20, 192-byte packets, sections 5.1 to 5.6.

use tscap_delay::schema::{How, Match, Method};

pub(super) const DEVICE: &str = "Cavium OCTEON II, Linux 3.10.20, 192-byte packets";

/// Mean and standard deviation, µs, of what comes nearest to `method`.
pub(super) fn beside(method: &Method) -> &'static str {
    let parallel = method.parallel.as_deref().unwrap_or_default();
    match method.how {
        // Fig. 9; the third deviation can't be read.
        How::Rtt => {
            "160.681 / 72.006 at 9.98 Mbit/s, 145.648 / 53.839 at 30.72, 139.861 / – at 38.40"
        }
        // Fig. 6.
        _ if method.load.is_some() => "71.563 / 10.368 on 1 core, 69.167 / 8.036 on 2",
        // Fig. 7.
        _ if parallel.starts_with("25 ") => "49.257 / 8.349",
        _ if parallel.starts_with("50 ") => "45.695 / 5.420",
        _ if !parallel.is_empty() => "49.257 / 8.349 at 25 Mbit/s, 45.695 / 5.420 at 50",
        // Tab. 2: a switch that bridges.
        _ if method.matched_by == Match::Bridge => "17.468 / 0.412, from 14.576 to 18.540",
        // Figs. 5 and 6.
        _ => "52.952 / 2.056 on 1 core, 56.525 / 2.384 on 2",
    }
}
