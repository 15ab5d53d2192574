//! Why a program was not attached, and what helps.

use crate::load::load_hint;
use tscap_base::failure::Failure;
use tscap_base::text::causes::chain;
use tscap_clock::StampPath;
use tscap_host::installed::Installed;
use tscap_network::netdev::Link;
use tscap_network::promisc::PromiscuousError;
use tscap_programs::hook::{AttachError, AttachPoint, AttachedProgram};

/// Why a hook was refused, without the verifier's log.
pub(super) fn first_line(refusal: &AttachError) -> String {
    let why = chain(refusal);
    why.lines().next().unwrap_or_default().to_owned()
}

/// A port that only listens gets frames for others.
pub(super) fn not_listening(link: &Link, error: PromiscuousError) -> Failure {
    Failure::from_error(error, format!("cannot listen on {}", link.name)).hint(format!(
        "--tap needs promiscuous mode: {}",
        Installed::find().advice()
    ))
}

/// With what helps against it.
pub(super) fn attach_failure(error: AttachError, path: StampPath) -> Failure {
    if error.os_error() == Some(libc::EMFILE) {
        return Failure::from_error(error, "cannot attach the program").hint(
            "each interface takes some open files: ulimit -n 65536, or LimitNOFILE= of a service",
        );
    }
    let hint = match &error {
        AttachError::Busy { interface, xdp } => {
            let removal = AttachedProgram::of(xdp).removal(interface, xdp.mode);
            format!("--hook auto captures beside it; or {removal}")
        }
        AttachError::Refused {
            at: AttachPoint::NativeXdp,
            ..
        } => "--hook auto or tcx works with every driver, but may show aggregates".into(),
        AttachError::Refused {
            at: AttachPoint::ClsactIngress | AttachPoint::ClsactEgress,
            ..
        } => "-Q in with --hook xdp or generic needs no program of tc".into(),
        AttachError::NoHardwareStamps { .. } => {
            "leave out --hw-stamps: of the drivers of Linux, igc, ice, idpf, mlx4, mlx5, stmmac and \
             veth tell them to programs at native XDP, some since 6.3"
                .into()
        }
        AttachError::Load { source, .. } => load_hint(path, source).into(),
        AttachError::Namespace { .. } => "mount procfs at /proc".into(),
        AttachError::Refused { .. } | AttachError::NoEntry { .. } => "dmesg may say more".into(),
    };
    Failure::from_error(error, "cannot attach the program").hint(hint)
}
