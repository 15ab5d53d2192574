//! libpcap, for tests that need it.

use tscap_filter::libpcap::Libpcap;

use crate::root::skip;

/// The library; where it is absent the test is skipped.
pub fn libpcap() -> Option<Libpcap> {
    let library = Libpcap::open();
    let why = |error| format!("{error} (`cargo xtask setup` installs libpcap0.8)");
    library.map_err(|error| skip(&why(error))).ok()
}
