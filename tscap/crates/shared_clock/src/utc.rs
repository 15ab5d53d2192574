//! What is known of UTC.

/// How far CLOCK_REALTIME is from UTC.
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
    /// CLOCK_REALTIME is within so many ns of UTC, if anything bounds it.
    pub fn within(bound_ns: Option<u64>) -> Self {
        Self {
            bound_ns,
            ..Self::default()
        }
    }
}
