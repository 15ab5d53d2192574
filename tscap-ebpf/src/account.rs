//! The account of a program: each frame is counted as seen, and is recorded or counted under
//! the reason why it was not.

use tscap_common::outcome::Outcome;
use tscap_common::state::{CpuState, Losses, NO_RING};

use crate::frame::Frame;
use crate::maps::{CPUS, LOSSES, RINGS};
use crate::vlan::Tag;

/// What a test-only program does wrong on purpose; the compiler removes it from
/// the others.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(dead_code)]
pub enum Fault {
    /// Nothing.
    None,
    /// Loses frames without counting them.
    CountsNoLoss,
    /// Asks for more bytes than the frame has.
    CopiesTooMuch,
}

/// What is recorded of a frame.
pub trait Recorder: Copy {
    /// Appends it to the ring of this CPU, whose state is `cpu`.
    fn append<F: Frame>(
        self,
        frame: F,
        stamp: u64,
        cpu: *mut CpuState,
        slot: u32,
        tag: Option<Tag>,
    ) -> Result<(), Outcome>;
}

/// Counts the frame, stamped with `stamp`, and has it recorded if the filter wants it. `stamp`
/// is `None` where the clock could not be read: the frame is counted.
#[inline(always)]
pub fn account<F: Frame>(frame: F, stamp: Option<u64>, fault: Fault, recorder: impl Recorder) {
    let Some(cpu) = CPUS.get_ptr_mut(frame.producer()) else {
        return;
    };
    unsafe { (*cpu).seen[F::HOOK.direction() as usize] += 1 };
    // Frames without a tag, almost all of them, have a copy of the code without tags.
    match frame.tag() {
        None => judge(frame, stamp, cpu, None, fault, recorder),
        tag => judge(frame, stamp, cpu, tag, fault, recorder),
    }
}

#[inline(always)]
fn judge<F: Frame>(
    frame: F,
    stamp: Option<u64>,
    cpu: *mut CpuState,
    tag: Option<Tag>,
    fault: Fault,
    recorder: impl Recorder,
) {
    let slot = frame.slot();
    if !frame.is_wanted(tag) {
        return count_filtered(cpu, slot);
    }
    let recorded = match stamp {
        Some(stamp) => recorder.append(frame, stamp, cpu, slot, tag),
        None => Err(Outcome::NoStamp),
    };
    match recorded {
        Ok(()) => unsafe { (*cpu).recorded += 1 },
        Err(outcome) if fault != Fault::CountsNoLoss => count_loss(cpu, slot, outcome),
        Err(_) => {}
    }
}

/// The ring of this CPU.
#[inline(always)]
pub fn ring_of(cpu: *mut CpuState) -> Result<*mut u8, Outcome> {
    let index = unsafe { (*cpu).ring };
    if index == NO_RING {
        return Err(Outcome::NoRing);
    }
    let ring = RINGS.get_ptr_mut(index).ok_or(Outcome::NoRing)?;
    Ok(ring.cast())
}

/// Unlike a loss it is not told to the next block. Frames of another slot than those
/// before settle the count of these.
#[inline(always)]
fn count_filtered(cpu: *mut CpuState, slot: u32) {
    unsafe {
        let settled = (*cpu).filtered_slot;
        if settled != slot {
            if let Some(losses) = LOSSES.get_ptr_mut(settled) {
                count(losses, Outcome::Filtered, (*cpu).filtered);
            }
            (*cpu).filtered = 0;
            (*cpu).filtered_slot = slot;
        }
        (*cpu).filtered += 1;
    }
}

#[inline(always)]
fn count_loss(cpu: *mut CpuState, slot: u32, outcome: Outcome) {
    if let Some(losses) = LOSSES.get_ptr_mut(slot) {
        count(losses, outcome, 1);
        unsafe {
            (*losses).pending += 1;
            (*cpu).pending += 1;
        }
    }
}

#[inline(always)]
fn count(losses: *mut Losses, outcome: Outcome, frames: u64) {
    let counts = unsafe { &mut (*losses).counts };
    if let Some(count) = counts.get_mut(outcome as usize) {
        *count += frames;
    }
}
