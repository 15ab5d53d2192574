//! Whether expressions can be compiled to filters.

use super::check::{Check, Topic, fix};

const LIBPCAP: Topic = Topic {
    id: "libpcap",
    why: "It compiles filter expressions; --filter-bytecode takes what tcpdump -ddd compiled.",
};

/// `found` is libpcap's version, or why it can't be used.
pub(super) fn libpcap(found: &Result<String, String>) -> Check {
    match found {
        Ok(version) => LIBPCAP.good(version),
        Err(why) => LIBPCAP.warning(why, fix("apt-get install -y libpcap0.8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict::{Good, Warning};

    #[test]
    fn libpcap_is_there_or_can_be_installed() {
        libpcap(&Ok("libpcap version 1.10.3".into())).is(Good, "1.10.3");
        libpcap(&Err("cannot open libpcap".into()))
            .is(Warning, "cannot open")
            .fixed_by("apt-get install -y libpcap0.8");
    }
}
