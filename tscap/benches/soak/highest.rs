//! The highest rate without loss.

use anyhow::{Result, bail};

use crate::soak::{Load, TestBed};

/// Each try is so much slower than the one before.
const STEP: f64 = 0.85;
/// More tries than any machine needs that is fit to soak.
const TRIES: usize = 12;

/// Finds it, in frames a second, from flat out downwards. Flat out itself is it
/// where the receiving CPU, which also sends, is slower than the converter.
pub fn find(bed: &TestBed, quick: bool) -> Result<f64> {
    let seconds = if quick { 1.0 } else { 5.0 };
    let mut rate = None;
    for _ in 0..TRIES {
        let soak = bed.run(
            "highest",
            Load {
                rate,
                seconds,
                in_bulks: true,
            },
        )?;
        eprintln!("highest: {:.0} frames/s, {} lost", soak.rate, soak.lost);
        if soak.lost == 0 {
            return Ok(soak.rate);
        }
        rate = Some(soak.rate * STEP);
    }
    bail!("frames are lost at any rate");
}
