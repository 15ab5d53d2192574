//! A machine made up for tests.

use super::{Cost, Costs, Load, Receiving};

/// Two CPUs: 4 million short frames a second received, 20 million converted.
pub fn costs(receiving: Receiving) -> Costs {
    Costs {
        receiving,
        converter_shares: receiving == Receiving::Apart,
        send_ns: 60.0,
        receive: Cost {
            frame_ns: 180.0,
            byte_ns: 0.15,
        },
        turned_away_ns: 150.0,
        convert: Cost {
            frame_ns: 20.0,
            byte_ns: 0.3,
        },
        turn_ns: 260_000.0,
        writer: None,
    }
}

/// A million frames of which 96 bytes are captured, into a ring of 1 MiB.
pub fn load(rate: f64) -> Load {
    Load {
        frames: 1e6,
        caplen: 96,
        rate,
        ring_bytes: f64::from(1 << 20),
    }
}
