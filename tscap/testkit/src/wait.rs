//! Waiting under a deadline.

use std::time::{Duration, Instant};

/// Between two looks at a condition that has no event to wait for.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Waits until `condition` gives a value. Panics after `limit` with what was
/// waited for.
pub fn until<T>(what: &str, limit: Duration, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {limit:?} for {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}
