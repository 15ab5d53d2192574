//! What the head of the file says of machine and interfaces.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tokio::sync::mpsc::UnboundedSender;

use super::opened::Opened;
use super::prepare::Machine;
use crate::cli::CapturePlan;
use crate::clock::OffsetBracket;
use crate::command::{Failure, Hint};
use crate::engine::{Event, Names, Output};
use crate::pcapng::{FileWriter, InterfaceInfo, InterfaceOption, SectionInfo};
use crate::sys::kernel_files::KernelFiles;
use crate::sys::netdev::Link;
use crate::sys::{ethtool, process, system};
use crate::xdp::XdpMode;

pub(super) fn describe(
    plan: &CapturePlan,
    machine: &Machine,
    link: &Link,
    mode: XdpMode,
    offloads: BTreeMap<String, bool>,
    bracket: Option<OffsetBracket>,
) -> InterfaceInfo {
    let mut tscap = InterfaceOption::new(mode.name(), plan.clock, offloads);
    tscap.boot_id = process::boot_id(&KernelFiles::live()).ok();
    tscap.stamp.bracket = bracket;
    tscap.stamp.forced = machine.untrusted_tsc.map(|why| why.to_string());
    let driver = || ethtool::driver(&link.name).map(|driver| driver.name);
    InterfaceInfo {
        name: link.name.clone(),
        description: link.alias.clone().or_else(driver),
        mac: link.mac,
        speed: ethtool::speed_bits_per_s(&link.name),
        snaplen: plan.snaplen,
        os: system::os(),
        tscap,
    }
}

pub(super) fn section() -> SectionInfo {
    SectionInfo {
        hardware: system::hardware(),
        os: system::os(),
        application: concat!("tscap ", env!("CARGO_PKG_VERSION")).into(),
    }
}

pub(super) fn write_headers(
    plan: &CapturePlan,
    opened: Opened,
    file: &mut FileWriter,
    tell: &UnboundedSender<Event>,
) -> Result<(Output, Option<(PathBuf, Names)>), Failure> {
    let (mut output, first) = opened
        .start()
        .trying(format!("cannot empty {}", plan.target))?;
    if let Err(error) = output.write(&file.take()) {
        if error.is_reader_gone() {
            // Ends the capture as it does at any later time.
            let _ = tell.send(Event::ReaderGone);
            return Ok((output, first));
        }
        // Half a header must not stay.
        let _ = output.cut(0);
        return Err(error)
            .trying(format!("cannot write the file header to {}", plan.target))
            .map_err(|failure| failure.hint("give -w a file where there is room"));
    }
    Ok((output, first))
}
