//! What is known of UTC.

use tscap_time::timex::KernelClock;

/// How far CLOCK_REALTIME is from UTC, and who says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utc {
    /// UTC less CLOCK_REALTIME, ns.
    pub offset_ns: i64,
    /// Greatest error of CLOCK_REALTIME plus that offset, ns; `None` while nobody states one.
    pub bound_ns: Option<u64>,
    /// Whether the source is lost, so that its time is only continued.
    pub is_holdover: bool,
}

impl Utc {
    /// As the kernel says.
    pub fn kernel() -> Self {
        let clock = KernelClock::read().ok();
        Self {
            bound_ns: clock.and_then(|clock| clock.utc_bound_ns()),
            ..Self::default()
        }
    }
}
