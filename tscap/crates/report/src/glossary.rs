//! The words of a report that a reader may not know.

use tscap_document::{Word, Words};

const STAMPS: [Word; 5] = [
    ("ktime", "CLOCK_MONOTONIC, by bpf_ktime_get_ns."),
    (
        "tai",
        "CLOCK_TAI, by bpf_ktime_get_tai_ns: atomic time, UTC without leap seconds.",
    ),
    (
        "tsc",
        "The CPU's time-stamp counter: tsc-perf by a perf event, tsc-module by tscap's kernel \
         module, tsc-kernel by a function of the kernel.",
    ),
    (
        "none",
        "A program that makes no stamp: the floor of the costs.",
    ),
    (
        "kfunc",
        "A function of the kernel or of a module that a BPF program may call.",
    ),
];

const DISTRIBUTION: [Word; 3] = [
    ("n, sd", "Number of values, and their standard deviation."),
    (
        "p50, p99, p99.9",
        "Quantiles: 50, 99, 99.9 % of the values are no greater.",
    ),
    (
        "lag 1",
        "Autocorrelation: how far a value tells the next one, from −1 to 1; 0 is not at all.",
    ),
];

const TRAFFIC: [Word; 6] = [
    (
        "softirq",
        "Where the kernel receives frames, and where tscap's program stamps them.",
    ),
    (
        "ring",
        "Memory in which frames wait for the part of tscap that writes the file.",
    ),
    ("snaplen", "Most bytes that are kept of a frame."),
    ("flat out", "Each frame as soon as the one before is sent."),
    (
        "gap, byte times",
        "From the end of a frame to the start of the next; a byte time at 1 Gbit/s is 8 ns.",
    ),
    (
        "steal",
        "CPU time that a hypervisor gave to other virtual machines.",
    ),
];

const COMPARISON: [Word; 6] = [
    ("read", "One reading of the clock."),
    (
        "program",
        "The whole capture program for a frame of 64 bytes, its stamp included.",
    ),
    (
        "checkpoint",
        "A clock read before and after the stamp of a frame, to measure the stamp.",
    ),
    (
        "tick",
        "The timer's interrupt, by which the kernel keeps account of a CPU's time.",
    ),
    (
        "verdict, margin",
        "Whether a cost differs from that of ktime. Ratios within the margin are equal for all \
         purposes: 3 %, or 1 ns.",
    ),
    (
        "voip, hd",
        "The traffic of the paper: telephony, and video in high definition.",
    ),
];

const SWEEP: [Word; 3] = [
    (
        "predicted",
        "What tscap's model of this machine says; other programs have no model.",
    ),
    ("turn", "From one drain of the ring to the next."),
    ("Mpps", "Million frames a second."),
];

const CLOCK: [Word; 7] = [
    (
        "counter",
        "The CPU's time-stamp counter, N cycles since it was reset.",
    ),
    (
        "p̂",
        "The estimated period of the counter: ns a cycle, an average over minutes.",
    ),
    (
        "θ̂",
        "The estimated offset of the uncorrected clock p̂·N + K from the host's clock.",
    ),
    (
        "skew",
        "The local rate of the host's clock against p̂, in parts per million (ppm).",
    ),
    (
        "absolute, difference clock",
        "The absolute clock follows the host's time; the difference clock is p̂·ΔN, which no \
         correction of the host's time touches.",
    ),
    (
        "Allan deviation",
        "How much the mean frequency changes from one interval of length τ to the next: \
         a relative frequency, 10⁻⁹ is 1 ns each second.",
    ),
    (
        "segment",
        "A span in which the clock was neither set nor lost.",
    ),
];

const DELAY: [Word; 11] = [
    (
        "tap, egress, peer",
        "Where packets leave: behind the queueing discipline, as a packet socket sees them; before \
         it, at tcx; at the other end of a veth pair, by XDP.",
    ),
    (
        "queueing",
        "From egress to tap, of the same packet: what the queueing discipline takes.",
    ),
    (
        "matched",
        "Packets that were seen once at the entry and once at the exit within the window.",
    ),
    (
        "lost inside, originated",
        "Seen at the entry only; seen at the exit only.",
    ),
    (
        "pending, early",
        "The same less than a window before the end, or after the start: nobody knows.",
    ),
    (
        "ambiguous",
        "More than one packet had the same key within the window: which is which is not guessed.",
    ),
    (
        "untracked",
        "Seen when no more packets could be remembered.",
    ),
    (
        "certificate",
        "What N delays, none of which is longer than m, say of the next ones: at 99 % confidence at \
         most a share of ln(100)/N is longer than m. It holds for independent delays, so blocks \
         are counted instead of packets.",
    ),
    (
        "block, correlation",
        "Packets in a row that depend on each other, made so long that neighbouring blocks \
         hardly do; how far they still do.",
    ),
    (
        "typical, worst case, PDV",
        "RFC 8219: the median; 99.9 % are no slower; the difference of that and the least.",
    ),
    (
        "corrected",
        "Less the mean of a measurement without the device, so of cables and mirrors alone.",
    ),
];

const COUNTERS: [Word; 6] = [
    (
        "p25, p50, p75, p95, p99.9",
        "Quantiles: 25, 50, 75, 95, 99.9 % of the readings took no longer. One with fewer than ten \
         readings beyond it is not told.",
    ),
    (
        "raw",
        "CLOCK_MONOTONIC_RAW: the kernel's clock as its counter alone drives it.",
    ),
    (
        "vDSO",
        "The kernel's code in each program, by which it reads clocks without a system call.",
    ),
    (
        "HPET, ACPI PM",
        "Timers of the chipset: the High Precision Event Timer, in memory, and the power-management \
         timer, at a port.",
    ),
    (
        "PTP",
        "A clock of a network card, with an oscillator of its own as a rule.",
    ),
    (
        "interface",
        "What the kernel does besides reading the counter: it finds the clock's base, multiplies and adds.",
    ),
];

/// Those of a comparison.
pub(super) fn comparison() -> Words {
    &[&STAMPS, &COMPARISON, &DISTRIBUTION, &TRAFFIC]
}

/// Those of a sweep of loss.
pub(super) fn sweep() -> Words {
    &[&STAMPS, &SWEEP, &TRAFFIC]
}

/// Those of a measurement of delays.
pub(super) fn delay() -> Words {
    &[&DELAY, &DISTRIBUTION, &STAMPS]
}

pub(super) fn counters() -> Words {
    &[&COUNTERS, &STAMPS]
}

/// Those of a clock's log.
pub(super) fn clock() -> Words {
    &[&CLOCK]
}
