//! A runtime waits for somebody who sets the clock.

use std::io;

use tokio::io::{Interest, unix::AsyncFd};
use tscap_time::timex::ClockSetWatch;

/// Registers a watch with the tokio runtime that this is called in.
///
/// # Errors
/// If the runtime can't watch the descriptor.
pub fn register(watch: ClockSetWatch) -> io::Result<AsyncFd<ClockSetWatch>> {
    // SAFETY: the descriptor is owned by the watch, which the `AsyncFd` owns; the watch never
    // replaces it, so it stays open and the same.
    let watched = unsafe { AsyncFd::register_with_interest(watch, Interest::READABLE) };
    watched.map_err(|error| error.into_parts().1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_runtime_can_watch() {
        let watch = ClockSetWatch::new().expect("a timer");
        let watched = register(watch).expect("this runtime has a reactor");
        assert!(!watched.get_ref().was_set().expect("readable"));
    }
}
