//! What a map of the standard library takes to do only this: to enter each key, to find it
//! again, and to remove it a window later.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use anyhow::{Result, ensure};

use crate::matcher::{PACKETS, WINDOW_NS, cpu_ns, key};

/// Keys are mixed already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are words");
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// CPU time, ns a packet once the window is full.
pub fn matched(delay_ns: u64) -> Result<f64> {
    let mut stamps: HashMap<u64, u64, BuildHasherDefault<AsItIs>> =
        HashMap::with_capacity_and_hasher(PACKETS as usize, BuildHasherDefault::default());
    let gap_ns = WINDOW_NS / PACKETS;
    let late = delay_ns / gap_ns;
    let (mut before, mut sum, mut count) = (0, 0, 0u64);
    for number in 0..3 * PACKETS {
        if number == PACKETS {
            before = cpu_ns()?;
        }
        stamps.insert(key(number), number * gap_ns);
        if let Some(left) = number.checked_sub(late)
            && let Some(entered) = stamps.get(&key(left))
        {
            sum += number * gap_ns - entered;
            count += 1;
        }
        if let Some(gone) = number.checked_sub(PACKETS) {
            stamps.remove(&key(gone));
        }
    }
    let taken_ns = cpu_ns()? - before;
    ensure!(sum == count * late * gap_ns, "a key was not found");
    Ok(taken_ns as f64 / (2 * PACKETS) as f64)
}
