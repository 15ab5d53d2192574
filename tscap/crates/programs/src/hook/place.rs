//! What distinguishes a loaded program from others of the same object.

use tscap_common::hook::Slot;

use super::call::{Call, Device};
use super::entry::Entry;
use super::kfunc::{ChecksumKfunc, KernelCounters, LayerKernel, TransmitKernel};
use tscap_filter as filter;

/// What makes a loaded program one of its own.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Its place in the capture.
    pub slot: Slot,
    /// Frames that it rejects are counted only.
    pub filter: Option<&'a filter::Program>,
    /// The interface that it is bound to.
    pub bound: Option<Bound<'a>>,
    /// What tells the state of a socket buffer's checksum, if anything does.
    pub checksum: Option<&'a ChecksumKfunc>,
    /// Of a program at a tracepoint: where the kernel has what it reads.
    pub transmit: Option<&'a TransmitKernel>,
    /// Of a program at a layer behind the interface: the same.
    pub layer: Option<&'a LayerKernel>,
    /// The XDP program at whose entry it runs.
    pub entry: Option<&'a Entry>,
    /// Where the kernel has what it counts; without it each counter is 0.
    pub counters: Option<&'a KernelCounters>,
    /// Of a program at a tracepoint or an entry: the one device whose frames it takes.
    pub device: Device,
    /// Of a program at XDP: whether frames end in it.
    pub ends_frames: bool,
}

impl Place<'_> {
    /// The first one, without a filter.
    pub const FIRST: Self = Self {
        slot: Slot(0),
        filter: None,
        bound: None,
        checksum: None,
        transmit: None,
        layer: None,
        entry: None,
        counters: None,
        device: Device { index: 0, netns: 0 },
        ends_frames: false,
    };
}

/// The interface that a program is bound to, and how it reads what is beside its frames.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    /// Number of the interface in this thread's network namespace.
    pub ifindex: u32,
    /// The kfunc that tells the VLAN tag, if it is asked.
    pub vlan_tag: Option<&'a Call>,
    /// The kfunc that tells the hardware stamp, if it is asked.
    pub hardware_stamp: Option<&'a Call>,
}
